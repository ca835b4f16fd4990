package dev.rollcall.client;

import dev.rollcall.client.services.Services;
import dev.rollcall.events.v1.WatchEventsRequest;
import dev.rollcall.registry.v1.WatchNodesRequest;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.function.Consumer;

/**
 * The API of one control plane. Several threads can use it. Close it when it is no longer needed. Its methods throw
 * RollcallException.
 */
public final class Client extends Services implements AutoCloseable {
  private final Map<String, Connection> connections;

  private Client(Map<String, Calls> calls, Map<String, Connection> connections) {
    super(calls);
    this.connections = connections;
  }

  /** Creates a client that finds the control plane as the command line does. Throws ConfigurationException. */
  public static Client create() {
    return create(new ClientOptions());
  }

  /** Creates a client with these options. It connects at the first call. Throws ConfigurationException. */
  public static Client create(ClientOptions options) {
    Map<String, Calls> calls = new LinkedHashMap<>();
    Map<String, Connection> connections = new LinkedHashMap<>();
    SeenRevision seen = new SeenRevision();
    Target.resolve(options, Surroundings.ofProcess())
        .forEach(
            (name, service) -> {
              Connection connection = new Connection(service);
              connections.put(name, connection);
              Credential credential = service.credential();
              calls.put(name, new Calls(connection, credential::token, options.timeout, options.retry, seen));
            });
    return new Client(calls, connections);
  }

  /** The address of a service, for example "http://127.0.0.1:7700". */
  public String address(String service) {
    return connections.get(service).baseUrl();
  }

  int openPaths(String service) {
    return connections.get(service).openPaths();
  }

  /** Watches every event from now on. */
  public EventWatch watchEvents() {
    return watchEvents(WatchEventsRequest.getDefaultInstance(), null);
  }

  /** Watches matching events. Starts at the bookmark or, if the bookmark is null, where the request says. */
  public EventWatch watchEvents(WatchEventsRequest request, String bookmark) {
    return watchEvents(request, bookmark, EventWatch.GIVE_UP_AFTER);
  }

  /**
   * Watches events across restarts of the control plane. Iterating returns every event exactly once. It throws
   * RollcallException if the log no longer contains the start ({@link Reason#REVISION_COMPACTED}), or if nothing
   * was received for {@code giveUpAfter}; null waits forever. Throws IllegalArgumentException for an invalid
   * bookmark.
   */
  public EventWatch watchEvents(WatchEventsRequest request, String bookmark, Duration giveUpAfter) {
    Bookmark from = bookmark == null ? null : Bookmark.parse(bookmark);
    return new EventWatch(events, new EventPosition(request, from), giveUpAfter);
  }

  /** Keeps all nodes in memory. */
  public NodeCache nodeCache() {
    return nodeCache(WatchNodesRequest.getDefaultInstance(), change -> {});
  }

  /** Keeps the matching nodes in memory. Calls {@code onChange} for every change. */
  public NodeCache nodeCache(WatchNodesRequest request, Consumer<NodeChange> onChange) {
    return new NodeCache(registry, request, onChange);
  }

  /** Ends every call and connection. */
  @Override
  public void close() {
    connections.values().forEach(Connection::close);
  }
}
