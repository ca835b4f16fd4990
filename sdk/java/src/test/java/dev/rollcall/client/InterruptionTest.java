package dev.rollcall.client;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.rollcall.registry.v1.GetNodeRequest;
import io.grpc.Status;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import org.junit.jupiter.api.Test;

/** Tests against a server that accepts connections and never responds. */
final class InterruptionTest {
  @Test
  void aWatchThatIsInterruptedSaysSo() throws Exception {
    assertInterrupted(client -> client.watchEvents().hasNext());
  }

  @Test
  void aCallThatIsInterruptedSaysSo() throws Exception {
    assertInterrupted(client -> client.registry.getNode(GetNodeRequest.getDefaultInstance()));
  }

  private static void assertInterrupted(Consumer<Client> call) throws Exception {
    try (ServerSocket server = new ServerSocket(0, 8, InetAddress.getLoopbackAddress());
        Client client = Client.create(options(server).timeout(Duration.ofMinutes(1)))) {
      CompletableFuture<Boolean> isStillInterrupted = new CompletableFuture<>();
      CompletableFuture<RuntimeException> failure = new CompletableFuture<>();
      Thread calling =
          new Thread(
              () -> {
                try {
                  call.accept(client);
                } catch (RuntimeException thrown) {
                  isStillInterrupted.complete(Thread.currentThread().isInterrupted());
                  failure.complete(thrown);
                }
              });
      calling.start();
      server.accept();
      calling.interrupt();
      RollcallException thrown =
          assertInstanceOf(RollcallException.Interrupted.class, failure.get(60, TimeUnit.SECONDS));
      assertEquals(Status.Code.CANCELLED, thrown.code());
      assertTrue(isStillInterrupted.get());
    }
  }

  private static ClientOptions options(ServerSocket server) throws IOException {
    return new ClientOptions().server("127.0.0.1:" + server.getLocalPort()).token("none");
  }
}
