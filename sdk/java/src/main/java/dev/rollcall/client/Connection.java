package dev.rollcall.client;

import dev.rollcall.client.Target.Trust;
import io.grpc.ChannelCredentials;
import io.grpc.Grpc;
import io.grpc.InsecureChannelCredentials;
import io.grpc.ManagedChannel;
import io.grpc.ManagedChannelBuilder;
import io.grpc.TlsChannelCredentials;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.util.HashSet;
import java.util.Set;
import java.util.concurrent.TimeUnit;

/**
 * The connection to one service. A path can die silently: calls after one without an answer use a new path. The old
 * path is closed when its last call has ended, because a call that merely takes long does not end the others.
 */
final class Connection implements AutoCloseable {
  // Pages are bounded at about 1 MiB; a page of one large item may exceed that.
  private static final int MOST_MESSAGE_BYTES = 16 * 1024 * 1024;

  /** One channel, and how many calls it has. */
  static final class Path {
    private final ManagedChannel channel;
    private int calls;

    private Path(ManagedChannel channel) {
      this.channel = channel;
    }

    ManagedChannel channel() {
      return channel;
    }
  }

  private final Target.Service service;
  // The current path, and those before it that still have calls.
  private final Set<Path> open = new HashSet<>();
  private Path current;
  private ChannelCredentials credentials;
  private boolean isClosed;

  Connection(Target.Service service) {
    this.service = service;
  }

  String baseUrl() {
    return service.address().baseUrl();
  }

  /** The path for one call; {@code release} follows when the call has ended. */
  synchronized Path acquire() {
    if (isClosed) throw new ConfigurationException("the client is closed");
    if (current == null) {
      current = new Path(open());
      open.add(current);
    }
    current.calls += 1;
    return current;
  }

  synchronized void release(Path path) {
    path.calls -= 1;
    if (path != current && path.calls == 0 && open.remove(path)) path.channel.shutdownNow();
  }

  /** Nothing came over this path, which is released later. Only the first of several such calls has an effect. */
  synchronized void replace(Path silent) {
    if (silent == current) current = null;
  }

  /** How many paths are open. */
  synchronized int openPaths() {
    return open.size();
  }

  @Override
  public synchronized void close() {
    isClosed = true;
    for (Path path : open) path.channel.shutdownNow();
    open.clear();
  }

  private ManagedChannel open() {
    Address address = service.address();
    Trust trust = service.trust();
    if (credentials == null) credentials = address.isTls() ? tls(trust) : InsecureChannelCredentials.create();
    ManagedChannelBuilder<?> builder =
        Grpc.newChannelBuilderForAddress(address.host(), address.port(), credentials)
            // A path that drops packets is noticed while a stream waits.
            .keepAliveTime(20, TimeUnit.SECONDS)
            .keepAliveTimeout(10, TimeUnit.SECONDS)
            .maxInboundMessageSize(MOST_MESSAGE_BYTES)
            // Retries are this package's own: they know request ids and the server's reasons.
            .disableRetry();
    if (address.isTls() && trust.serverName() != null) builder.overrideAuthority(trust.serverName());
    return builder.build();
  }

  private ChannelCredentials tls(Trust trust) {
    TlsChannelCredentials.Builder builder = TlsChannelCredentials.newBuilder();
    try {
      if (trust.caFingerprint() != null) {
        String pem = Authority.fetch(service.address(), trust.serverName(), trust.caFingerprint());
        builder.trustManager(new ByteArrayInputStream(pem.getBytes(StandardCharsets.US_ASCII)));
      } else if (trust.caFile() != null) {
        builder.trustManager(stream(trust.caFile()));
      }
      if (trust.clientCertificate() != null) {
        builder.keyManager(stream(trust.clientCertificate()), stream(trust.clientKey()));
      }
    } catch (IOException cause) {
      throw new ConfigurationException("cannot read " + cause.getMessage(), cause);
    }
    return builder.build();
  }

  private static ByteArrayInputStream stream(java.nio.file.Path file) throws IOException {
    return new ByteArrayInputStream(Files.readAllBytes(file));
  }
}
