package dev.rollcall.client;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.rollcall.node.v1.Node;
import dev.rollcall.registry.v1.GetNodeRequest;
import dev.rollcall.registry.v1.GetNodeResponse;
import dev.rollcall.registry.v1.NodeChange;
import dev.rollcall.registry.v1.RegistryServiceGrpc;
import dev.rollcall.registry.v1.WatchNodesRequest;
import dev.rollcall.registry.v1.WatchNodesResponse;
import io.grpc.Context;
import io.grpc.Grpc;
import io.grpc.InsecureServerCredentials;
import io.grpc.Server;
import io.grpc.stub.ServerCallStreamObserver;
import io.grpc.stub.StreamObserver;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Tests what calls do when a path dies silently, against a registry in this process. */
final class PathsTest {
  private static final GetNodeRequest NODE = GetNodeRequest.newBuilder().setNode("n").build();

  private final CountDownLatch watchEnded = new CountDownLatch(1);
  private Server server;
  private SilentProxy proxy;

  @BeforeEach
  void start() throws IOException {
    server = Grpc.newServerBuilderForPort(0, InsecureServerCredentials.create()).addService(new Registry()).build();
    server.start();
    proxy = new SilentProxy(server.getPort());
  }

  @AfterEach
  void end() throws IOException {
    proxy.close();
    server.shutdownNow();
  }

  /** Responds to calls immediately, except for the node "slow". Sends two changes to watches. */
  private final class Registry extends RegistryServiceGrpc.RegistryServiceImplBase {
    @Override
    public void getNode(GetNodeRequest request, StreamObserver<GetNodeResponse> answer) {
      // The first attempt gets a third of the 9 s, which is too little; the second attempt gets the rest.
      boolean isEnough = Context.current().getDeadline().timeRemaining(TimeUnit.MILLISECONDS) >= 4_000;
      if (request.getNode().equals("slow") && !isEnough) return;
      answer.onNext(GetNodeResponse.newBuilder().setNode(Node.newBuilder().setId(request.getNode())).build());
      answer.onCompleted();
    }

    @Override
    public void watchNodes(WatchNodesRequest request, StreamObserver<WatchNodesResponse> answer) {
      ((ServerCallStreamObserver<WatchNodesResponse>) answer).setOnCancelHandler(watchEnded::countDown);
      WatchNodesResponse.Builder message = WatchNodesResponse.newBuilder();
      for (String id : List.of("a", "b")) {
        message.addChanges(NodeChange.newBuilder().setUpserted(Node.newBuilder().setId(id)));
      }
      answer.onNext(message.build());
    }
  }

  private Client client(Duration timeout, int attempts) {
    RetryPolicy retry = new RetryPolicy(attempts, Duration.ofMillis(200), Duration.ofSeconds(5));
    return Client.create(new ClientOptions().server(proxy.address()).token("none").timeout(timeout).retry(retry));
  }

  private static String id(Client client) {
    return client.registry.getNode(NODE).getNode().getId();
  }

  @Test
  void callsUseANewPathWhenOneDiesSilently() throws Exception {
    var threads = Executors.newFixedThreadPool(8);
    try (Client client = client(Duration.ofSeconds(9), 5)) {
      assertEquals("n", id(client));
      proxy.fallSilent();
      List<CompletableFuture<String>> calls = new ArrayList<>();
      for (int number = 0; number < 8; number++) {
        calls.add(CompletableFuture.supplyAsync(() -> id(client), threads));
      }
      for (CompletableFuture<String> call : calls) assertEquals("n", call.get(60, TimeUnit.SECONDS));
      assertEquals(2, proxy.accepted());
      assertEquals(1, client.openPaths("registry"));
    } finally {
      threads.shutdownNow();
    }
  }

  @Test
  void aSlowServerGetsTheTimeThatIsLeft() {
    try (Client client = client(Duration.ofSeconds(9), 5)) {
      assertEquals("slow", client.registry.getNode(NODE.toBuilder().setNode("slow").build()).getNode().getId());
    }
  }

  @Test
  void aCallThatIsNotRepeatedFailsAndTheNextOneUsesANewPath() {
    try (Client client = client(Duration.ofSeconds(2), 1)) {
      assertEquals("n", id(client));
      proxy.fallSilent();
      assertThrows(RollcallException.TimedOut.class, () -> id(client));
      assertEquals("n", id(client));
      assertEquals(2, proxy.accepted());
    }
  }

  @Test
  void aStreamThatFallsSilentMakesLaterCallsUseANewPath() {
    try (Client client = client(Duration.ofSeconds(9), 5);
        MessageStream<WatchNodesResponse> stream =
            client.registry.watchNodes(WatchNodesRequest.getDefaultInstance(), Duration.ofSeconds(1))) {
      assertEquals(2, stream.next().getChangesCount());
      proxy.fallSilent();
      assertThrows(RollcallException.Unreachable.class, stream::hasNext);
      assertEquals("n", id(client));
      assertEquals(2, proxy.accepted());
      ControlPlane.eventually("the silent path is closed", () -> client.openPaths("registry") == 1);
    }
  }

  @Test
  void aCacheThatIsClosedByItsListenerDeliversNothingMore() throws Exception {
    List<String> delivered = new CopyOnWriteArrayList<>();
    CompletableFuture<NodeCache> cache = new CompletableFuture<>();
    try (Client client = client(Duration.ofSeconds(9), 5)) {
      cache.complete(
          client.nodeCache(
              WatchNodesRequest.getDefaultInstance(),
              change -> {
                delivered.add(change.after().getId());
                cache.join().close();
              }));
      assertTrue(watchEnded.await(60, TimeUnit.SECONDS));
      assertEquals(List.of("a"), delivered);
    }
  }
}
