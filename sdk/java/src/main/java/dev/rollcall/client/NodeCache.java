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
 * Keeps the nodes that match a request in memory and up to date, in a separate thread. It lists them, then watches
 * for changes. The cache survives restarts of the control plane. An exception of the listener, or a failure that a
 * retry cannot fix, ends the cache. After that, every method throws this exception or failure.
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

  /** Calls {@code onChange} for every change, in the cache's thread. */
  NodeCache(RegistryService registry, WatchNodesRequest request, Consumer<NodeChange> onChange) {
    this.registry = registry;
    this.view = new NodeView(request);
    this.onChange = onChange;
    this.thread = new Thread(this::run, "rollcall-node-cache");
    thread.setDaemon(true);
    thread.start();
  }

  /** Waits until every node is known. Throws RollcallException, including when the timeout is reached. */
  public void awaitSynced(Duration timeout) throws InterruptedException {
    long endsAt = System.nanoTime() + timeout.toNanos();
    synchronized (lock) {
      while (!view.isSynced() && failure == null) {
        long left = endsAt - System.nanoTime();
        if (left <= 0) {
          String message = "the nodes did not arrive within " + timeout.toMillis() + " ms";
          throw Failures.of(RollcallException.Failure.of(Status.Code.DEADLINE_EXCEEDED, message), null);
        }
        lock.wait(left / 1_000_000 + 1);
      }
      throwFailure();
    }
  }

  /** The node with this id; null if there is none. */
  public Node get(String id) {
    synchronized (lock) {
      throwFailure();
      return view.nodes().get(id);
    }
  }

  /** All nodes, in no particular order. */
  public List<Node> list() {
    synchronized (lock) {
      throwFailure();
      return List.copyOf(view.nodes().values());
    }
  }

  /**
   * Stops following. The cache keeps its current nodes. The listener is not called again, but a call that is
   * already running in another thread may still be in progress when this method returns. The listener can call this
   * method.
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
      // Fail, so that nodes that the cache no longer follows are not mistaken for current ones.
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

  /** Reads one stream to its end. Returns the failure that ended it, or null after a normal end. */
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
