package dev.rollcall.client;

import dev.rollcall.client.services.RegistryService;
import dev.rollcall.node.v1.Node;
import dev.rollcall.registry.v1.WatchNodesRequest;
import dev.rollcall.registry.v1.WatchNodesResponse;
import io.grpc.Status;
import java.time.Duration;
import java.util.List;
import java.util.function.Consumer;

/**
 * Every node of a control plane that matches a request, kept in memory and up to date by a thread of its own: list,
 * then watch. It survives restarts of the control plane. What the listener throws, and a failure that no repetition
 * mends, end the cache: then every method throws that.
 */
public final class NodeCache implements AutoCloseable {
  private final RegistryService registry;
  private final NodeView view;
  private final Consumer<NodeChange> onChange;
  private final Reopening reopening = new Reopening(null);
  private final Object lock = new Object();
  private final Thread thread;
  private volatile MessageStream<WatchNodesResponse> stream;
  private volatile boolean isClosed;
  private RuntimeException failure;

  /** {@code onChange} is called for every change, in the cache's own thread. */
  NodeCache(RegistryService registry, WatchNodesRequest request, Consumer<NodeChange> onChange) {
    this.registry = registry;
    this.view = new NodeView(request);
    this.onChange = onChange;
    this.thread = new Thread(this::run, "rollcall-node-cache");
    thread.setDaemon(true);
    thread.start();
  }

  /** Waits until every node is there. Throws RollcallException, also when the time is over. */
  public void awaitSynced(Duration timeout) throws InterruptedException {
    long endsAt = System.nanoTime() + timeout.toNanos();
    synchronized (lock) {
      while (!view.isSynced() && failure == null) {
        long left = endsAt - System.nanoTime();
        if (left <= 0) {
          String message = "the nodes did not come within " + timeout.toMillis() + " ms";
          throw Failures.of(RollcallException.Failure.of(Status.Code.DEADLINE_EXCEEDED, message), null);
        }
        lock.wait(left / 1_000_000 + 1);
      }
      throwFailure();
    }
  }

  /** The node of this id; null where there is none. */
  public Node get(String id) {
    synchronized (lock) {
      throwFailure();
      return view.nodes().get(id);
    }
  }

  /** All nodes, in no order. */
  public List<Node> list() {
    synchronized (lock) {
      throwFailure();
      return List.copyOf(view.nodes().values());
    }
  }

  /**
   * Stops following. What is there stays as it is. The listener is not called again; a call that has begun in another
   * thread is not waited for. The listener may call this.
   */
  @Override
  public void close() {
    isClosed = true;
    reopening.close();
    MessageStream<?> open = stream;
    if (open != null) open.close();
  }

  private void run() {
    try {
      while (!isClosed) follow();
    } catch (RuntimeException cause) {
      // What is not followed must not be taken for current.
      synchronized (lock) {
        if (!isClosed) failure = cause;
        lock.notifyAll();
      }
    } finally {
      MessageStream<?> open = stream;
      if (open != null) open.close();
    }
  }

  private void follow() {
    RuntimeException broken = read();
    if (isClosed) return;
    if (broken instanceof RollcallException it && isMended(it)) broken = null;
    if (broken == null) reopening.ended();
    else reopening.failed(broken);
  }

  private boolean isMended(RollcallException broken) {
    synchronized (lock) {
      return view.failed(broken.reason());
    }
  }

  /** Reads one stream to its end; answers what broke it, and null for an end in order. */
  private RuntimeException read() {
    try {
      WatchNodesRequest request;
      synchronized (lock) {
        request = view.nextRequest();
      }
      stream = registry.watchNodes(request, Reopening.SILENCE);
      if (isClosed) stream.close();
    } catch (RollcallException | ConfigurationException broken) {
      return broken;
    }
    try (MessageStream<WatchNodesResponse> open = stream) {
      for (;;) {
        WatchNodesResponse message;
        try {
          if (!open.hasNext()) return null;
          message = open.next();
        } catch (RollcallException broken) {
          return broken;
        }
        reopening.heard();
        take(message);
      }
    }
  }

  private void take(WatchNodesResponse message) {
    List<NodeChange> changes;
    synchronized (lock) {
      if (isClosed) return;
      changes = view.apply(message);
      lock.notifyAll();
    }
    for (NodeChange change : changes) {
      if (isClosed) return;
      onChange.accept(change);
    }
  }

  private void throwFailure() {
    if (failure != null) throw failure;
  }
}
