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
import java.nio.file.attribute.BasicFileAttributes;
import java.util.HashSet;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;

/**
 * The connection to one service. A path can die silently, so after a call without a response, new calls use a new
 * path. The old path is closed when its last call has ended, so that one slow call does not break the others. New
 * calls also use a new path after the TLS files were replaced.
 */
final class Connection implements AutoCloseable {
  // The maximum size of a message. Pages are limited to about 1 MiB, but a page of one large item can exceed that.
  private static final int MOST_MESSAGE_BYTES = 16 * 1024 * 1024;

  /** One channel, with the number of its running calls. */
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
  // The current path, and earlier paths that still have calls.
  private final Set<Path> open = new HashSet<>();
  private Path current;
  private ChannelCredentials credentials;
  // What stampOf() returned before the TLS files were read.
  private String stamp;
  private boolean isClosed;

  Connection(Target.Service service) {
    this.service = service;
  }

  String baseUrl() {
    return service.address().baseUrl();
  }

  /** Acquires the path for one call. Call {@code release} when the call has ended. */
  synchronized Path acquire() {
    if (isClosed) throw new ConfigurationException("the client is closed");
    readReplacedFiles();
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

  /**
   * Switches new calls from a silent path to a new one. Call it before {@code release}. If several calls of a path
   * report silence, only the first report has an effect.
   */
  synchronized void replace(Path silent) {
    if (silent == current) current = null;
  }

  /** The number of open paths. */
  synchronized int openPaths() {
    return open.size();
  }

  @Override
  public synchronized void close() {
    isClosed = true;
    for (Path path : open) path.channel.shutdownNow();
    open.clear();
  }

  private void readReplacedFiles() {
    if (credentials == null) return;
    String now = stampOf(files());
    if (now.equals(stamp)) return;
    try {
      credentials = tls(service.trust());
    } catch (ConfigurationException cause) {
      // The new files may be half written, so keep the previous content until they can be read.
      return;
    }
    stamp = now;
    Path former = current;
    current = null;
    if (former != null && former.calls == 0 && open.remove(former)) former.channel.shutdownNow();
  }

  /** The TLS files to check for changes. An authority that was fetched by its fingerprint does not change. */
  private List<java.nio.file.Path> files() {
    Trust trust = service.trust();
    if (!service.address().isTls() || trust.caFingerprint() != null) return List.of();
    return Stream.of(trust.caFile(), trust.clientCertificate(), trust.clientKey()).filter(Objects::nonNull).toList();
  }

  /** Returns a string that changes when any of the files changes. */
  private static String stampOf(List<java.nio.file.Path> files) {
    StringBuilder stamp = new StringBuilder();
    for (java.nio.file.Path file : files) {
      try {
        BasicFileAttributes found = Files.readAttributes(file, BasicFileAttributes.class);
        stamp.append(found.lastModifiedTime()).append(' ').append(found.size()).append(' ').append(found.fileKey());
      } catch (IOException gone) {
        stamp.append("gone");
      }
    }
    return stamp.toString();
  }

  private ManagedChannel open() {
    Address address = service.address();
    Trust trust = service.trust();
    if (credentials == null) {
      stamp = stampOf(files());
      credentials = address.isTls() ? tls(trust) : InsecureChannelCredentials.create();
    }
    ManagedChannelBuilder<?> builder =
        Grpc.newChannelBuilderForAddress(address.host(), address.port(), credentials)
            // Detect a connection that drops packets while a stream waits.
            .keepAliveTime(20, TimeUnit.SECONDS)
            .keepAliveTimeout(10, TimeUnit.SECONDS)
            .maxInboundMessageSize(MOST_MESSAGE_BYTES)
            // The client retries calls itself, because it knows request ids and the server's reasons.
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
        String pem = Files.readString(trust.caFile(), StandardCharsets.ISO_8859_1);
        if (!pem.contains("-----END CERTIFICATE-----")) {
          throw new ConfigurationException(trust.caFile() + " contains no certificate");
        }
        builder.trustManager(new ByteArrayInputStream(pem.getBytes(StandardCharsets.ISO_8859_1)));
      }
      if (trust.clientCertificate() != null) {
        ClientPair pair = ClientPair.read(trust.clientCertificate(), trust.clientKey());
        builder.keyManager(new ByteArrayInputStream(pair.certificate()), new ByteArrayInputStream(pair.key()));
      }
    } catch (IOException cause) {
      throw new ConfigurationException("cannot read " + cause.getMessage(), cause);
    }
    return builder.build();
  }
}
