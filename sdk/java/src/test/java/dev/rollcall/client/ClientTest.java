package dev.rollcall.client;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.rollcall.admin.v1.SetNodeLabelsRequest;
import dev.rollcall.admin.v1.SetNodeLabelsResponse;
import dev.rollcall.events.v1.Event;
import dev.rollcall.events.v1.ListEventsRequest;
import dev.rollcall.events.v1.WatchEventsRequest;
import dev.rollcall.node.v1.Node;
import dev.rollcall.registry.v1.GetNodeRequest;
import dev.rollcall.registry.v1.ListNodesRequest;
import dev.rollcall.registry.v1.WatchNodesRequest;
import java.io.IOException;
import java.net.InetAddress;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.TreeSet;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.stream.IntStream;
import java.util.stream.StreamSupport;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/** Tests against a real control plane, with this machine as its only node. */
final class ClientTest {
  private static final WatchEventsRequest LABELS =
      WatchEventsRequest.newBuilder().addTypes("node.labels.changed").build();

  private static ControlPlane plane;
  private static Client client;
  private static String node;

  @BeforeAll
  static void start() throws IOException {
    node = InetAddress.getLocalHost().getHostName();
    plane = new ControlPlane();
    plane.start();
    client = Client.create(plane.options().timeout(Duration.ofSeconds(60)));
    ControlPlane.eventually("this machine is listed", () -> ids().contains(node));
  }

  @AfterAll
  static void end() {
    client.close();
    plane.close();
  }

  private static TreeSet<String> ids() {
    TreeSet<String> found = new TreeSet<>();
    ListNodesRequest request = ListNodesRequest.newBuilder().setPageSize(1).build();
    for (Node it : client.registry.listNodesEach(request)) found.add(it.getId());
    return found;
  }

  private static SetNodeLabelsResponse setLabel(String value, String requestId) {
    return client.admin.setNodeLabels(
        SetNodeLabelsRequest.newBuilder().setNode(node).putSet("sdk", value).setRequestId(requestId).build());
  }

  private static String valueOf(Event event) {
    return event.getAfter().getFieldsOrThrow("labels").getStructValue().getFieldsOrThrow("sdk").getStringValue();
  }

  private static List<String> logged() {
    ListEventsRequest request = ListEventsRequest.newBuilder().setPageSize(2).addTypes("node.labels.changed").build();
    var events = client.events.listEventsEach(request).spliterator();
    return StreamSupport.stream(events, false).map(ClientTest::valueOf).toList();
  }

  @Test
  void iteratesOverPages() {
    for (int number = 0; number < 5; number++) setLabel("page-" + number, "");
    List<String> pages = logged().stream().filter(it -> it.startsWith("page-")).toList();
    assertEquals(List.of("page-0", "page-1", "page-2", "page-3", "page-4"), pages);
  }

  @Test
  void tellsTheReasonOfARefusal() {
    RollcallException unknown =
        assertThrows(
            RollcallException.Refused.class,
            () -> client.registry.getNode(GetNodeRequest.newBuilder().setNode("nowhere").build()));
    assertEquals(Reason.NODE_NOT_FOUND, unknown.reason());
    RollcallException invalid =
        assertThrows(
            RollcallException.Refused.class,
            () -> client.registry.listNodes(ListNodesRequest.newBuilder().setPageSize(100_000).build()));
    assertEquals(List.of("page_size"), invalid.violations().stream().map(it -> it.field()).toList());
    try (Client wrong = Client.create(new ClientOptions().server(plane.server).token("wrong"))) {
      ListNodesRequest all = ListNodesRequest.getDefaultInstance();
      RollcallException refused =
          assertThrows(RollcallException.Refused.class, () -> wrong.registry.listNodes(all));
      assertEquals(Reason.TOKEN_INVALID, refused.reason());
    }
  }

  @Test
  void tellsThatNoServerAnswersAfterItsRetries() {
    RetryPolicy twice = new RetryPolicy(2, Duration.ofMillis(1), Duration.ofMillis(1));
    try (Client nowhere = Client.create(new ClientOptions().server("127.0.0.1:1").token("none").retry(twice))) {
      assertThrows(
          RollcallException.Unreachable.class, () -> nowhere.registry.listNodes(ListNodesRequest.getDefaultInstance()));
    }
  }

  @Test
  void hasOneEffectForOneRequestId() {
    SetNodeLabelsResponse first = setLabel("once", "the-same");
    int before = logged().size();
    assertEquals(first, setLabel("once", "the-same"));
    assertEquals(before, logged().size());
  }

  @Test
  void repeatsAChangeWithoutAnAnswerOverACrash() {
    plane.kill();
    RetryPolicy patience = new RetryPolicy(1_000, Duration.ofMillis(100), Duration.ofMillis(200));
    try (Client patient = Client.create(plane.options().timeout(Duration.ofMinutes(2)).retry(patience))) {
      SetNodeLabelsRequest request =
          SetNodeLabelsRequest.newBuilder().setNode(node).putSet("sdk", "over-a-crash").build();
      CompletableFuture<?> change = CompletableFuture.supplyAsync(() -> patient.admin.setNodeLabels(request));
      plane.start();
      change.join();
    }
    assertEquals(1, logged().stream().filter("over-a-crash"::equals).count());
  }

  @Test
  void losesAndDoublesNoEventOverCrashes() {
    List<String> seen = new CopyOnWriteArrayList<>();
    List<String> expected = new ArrayList<>();
    try (EventWatch watch = client.watchEvents(LABELS, null)) {
      CompletableFuture<Void> following = CompletableFuture.runAsync(() -> watch.forEach(it -> seen.add(valueOf(it))));
      ControlPlane.eventually("it follows", () -> watch.bookmark() != null);
      for (int crash = 0; crash < 2; crash++) {
        for (int number = 0; number < 20; number++) {
          expected.add("crash-" + crash + "-" + number);
          setLabel("crash-" + crash + "-" + number, "");
        }
        plane.crash();
      }
      expected.add("the-end");
      setLabel("the-end", "");
      ControlPlane.eventually("all are seen", () -> seen.size() >= expected.size());
      assertEquals(expected, seen);
      watch.close();
      following.join();
    }
  }

  @Test
  void goesOnFromABookmarkWithinAMessage() {
    ListEventsRequest all = ListEventsRequest.newBuilder().setPageSize(1_000).build();
    String bookmark = client.events.listEvents(all).getResumeToken();
    for (int number = 0; number < 10; number++) setLabel("mark-" + number, "");
    List<String> seen = new ArrayList<>();
    for (int number = 0; number < 10; number++) {
      try (EventWatch watch = client.watchEvents(LABELS, bookmark)) {
        seen.add(valueOf(watch.next()));
        bookmark = watch.bookmark();
      }
    }
    assertEquals(IntStream.range(0, 10).mapToObj(number -> "mark-" + number).toList(), seen);
  }

  @Test
  void tellsThatABookmarkIsNoneOfThisLog() {
    try (EventWatch watch = client.watchEvents(LABELS, "nonsense@1")) {
      assertEquals(
          Reason.INVALID_RESUME_TOKEN, assertThrows(RollcallException.class, watch::hasNext).reason());
    }
  }

  @Test
  void keepsEveryNodeOverACrash() throws InterruptedException {
    List<String> changed = new CopyOnWriteArrayList<>();
    try (NodeCache cache =
        client.nodeCache(
            WatchNodesRequest.getDefaultInstance(),
            change -> changed.add(change.after() == null ? "" : change.after().getId()))) {
      cache.awaitSynced(Duration.ofSeconds(60));
      plane.crash();
      setLabel("after-the-crash", "");
      ControlPlane.eventually(
          "the label has arrived",
          () -> cache.get(node).getLabelsList().stream().anyMatch(it -> it.getValue().equals("after-the-crash")));
      TreeSet<String> listed = ids();
      ControlPlane.eventually("it has the listed nodes", () -> cache.list().size() == listed.size());
      assertEquals(listed, new TreeSet<>(cache.list().stream().map(Node::getId).toList()));
      assertTrue(changed.contains(node));
    }
  }

  @Test
  void tellsWhatAListenerOfACacheThrows() {
    try (NodeCache cache =
        client.nodeCache(
            WatchNodesRequest.getDefaultInstance(),
            change -> {
              throw new IllegalStateException("broken listener");
            })) {
      ControlPlane.eventually("the cache ends", () -> isBroken(cache));
      assertThrows(IllegalStateException.class, () -> cache.awaitSynced(Duration.ofSeconds(60)));
    }
  }

  private static boolean isBroken(NodeCache cache) {
    try {
      cache.list();
      return false;
    } catch (IllegalStateException broken) {
      return broken.getMessage().equals("broken listener");
    }
  }
}
