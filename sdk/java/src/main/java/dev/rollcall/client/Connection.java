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
import java.nio.file.Path;
import java.util.concurrent.TimeUnit;

/** The connection to one service, which is made at the first call, and again when its files could not be read. */
final class Connection implements AutoCloseable {
  // Pages are bounded at about 1 MiB; a page of one large item may exceed that.
  private static final int MOST_MESSAGE_BYTES = 16 * 1024 * 1024;

  private final Target.Service service;
  private ManagedChannel channel;
  private boolean isClosed;

  Connection(Target.Service service) {
    this.service = service;
  }

  String baseUrl() {
    return service.address().baseUrl();
  }

  synchronized ManagedChannel channel() {
    if (isClosed) throw new ConfigurationException("the client is closed");
    if (channel == null) channel = open();
    return channel;
  }

  @Override
  public synchronized void close() {
    isClosed = true;
    if (channel != null) channel.shutdownNow();
  }

  private ManagedChannel open() {
    Address address = service.address();
    Trust trust = service.trust();
    ChannelCredentials credentials = address.isTls() ? tls(trust) : InsecureChannelCredentials.create();
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

  private static ByteArrayInputStream stream(Path file) throws IOException {
    return new ByteArrayInputStream(Files.readAllBytes(file));
  }
}
