package dev.rollcall.client;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.rollcall.node.v1.Node;
import dev.rollcall.registry.v1.GetNodeRequest;
import dev.rollcall.registry.v1.GetNodeResponse;
import dev.rollcall.registry.v1.RegistryServiceGrpc;
import io.grpc.Grpc;
import io.grpc.Server;
import io.grpc.TlsServerCredentials;
import io.grpc.stub.StreamObserver;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Tests replacing TLS files while a client runs. */
final class TlsFilesTest {
  @TempDir Path folder;

  /** Creates a self-signed certificate for this machine, and returns its file. */
  private Path selfSigned(String name) throws IOException, InterruptedException {
    Path file = folder.resolve(name + ".pem");
    String command =
        "openssl req -x509 -days 1 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes"
            + " -addext subjectAltName=IP:127.0.0.1 -subj /CN=";
    ProcessBuilder builder = new ProcessBuilder((command + name).split(" "));
    builder.command().addAll(List.of("-keyout", keyOf(file).toString(), "-out", file.toString()));
    assertEquals(0, builder.redirectErrorStream(true).redirectOutput(ProcessBuilder.Redirect.DISCARD).start().waitFor());
    return file;
  }

  private static Path keyOf(Path certificate) {
    return Path.of(certificate + ".key");
  }

  private static Server serve(Path certificate, int port) throws IOException {
    RegistryServiceGrpc.RegistryServiceImplBase registry =
        new RegistryServiceGrpc.RegistryServiceImplBase() {
          @Override
          public void getNode(GetNodeRequest request, StreamObserver<GetNodeResponse> answer) {
            Node node = Node.newBuilder().setId(request.getNode()).build();
            answer.onNext(GetNodeResponse.newBuilder().setNode(node).build());
            answer.onCompleted();
          }
        };
    var credentials = TlsServerCredentials.create(certificate.toFile(), keyOf(certificate).toFile());
    return Grpc.newServerBuilderForPort(port, credentials).addService(registry).build().start();
  }

  @Test
  void anAuthorityFileCountsAgainWhenItIsReplaced() throws Exception {
    Path former = selfSigned("former");
    Path next = selfSigned("next");
    Path file = folder.resolve("ca.pem");
    Files.copy(former, file);
    Server first = serve(former, 0);
    int port = first.getPort();
    ClientOptions options = new ClientOptions().server("https://127.0.0.1:" + port).token("none").caFile(file);
    // Allow much time, because the first handshake can take seconds on a busy machine.
    options.timeout(Duration.ofMinutes(1)).retry(new RetryPolicy(1, Duration.ofMillis(200), Duration.ofSeconds(5)));
    try (Client client = Client.create(options)) {
      assertEquals("n", id(client));
      // The file is half written, so the existing connection still serves the call.
      Files.writeString(file, "-----BEGIN CERT");
      assertEquals("n", id(client));
      first.shutdownNow().awaitTermination();
      Server second = serve(next, port);
      try {
        Files.copy(next, file, StandardCopyOption.REPLACE_EXISTING);
        assertEquals("n", id(client));
        assertEquals(1, client.openPaths("registry"));
      } finally {
        second.shutdownNow();
      }
    } finally {
      first.shutdownNow();
    }
  }

  @Test
  void aPairThatDoesNotMatchIsNotUsed() throws Exception {
    Path authority = selfSigned("server");
    Path own = selfSigned("own");
    Path other = selfSigned("other");
    Server server = serve(authority, 0);
    try {
      ClientOptions options =
          new ClientOptions().server("https://127.0.0.1:" + server.getPort()).token("none").caFile(authority);
      options.timeout(Duration.ofMinutes(1));
      try (Client client = Client.create(options.clientCertificate(own, keyOf(own)))) {
        assertEquals("n", id(client));
        // The pair is half replaced, so the existing connection still serves the call.
        Files.copy(keyOf(other), keyOf(own), StandardCopyOption.REPLACE_EXISTING);
        assertEquals("n", id(client));
      }
      try (Client client = Client.create(options)) {
        ConfigurationException refused = assertThrows(ConfigurationException.class, () -> id(client));
        assertTrue(refused.getMessage().contains(keyOf(own) + " are not a certificate and its key"));
      }
    } finally {
      server.shutdownNow();
    }
  }

  private static String id(Client client) {
    return client.registry.getNode(GetNodeRequest.newBuilder().setNode("n").build()).getNode().getId();
  }
}
