package dev.rollcall.client;

import dev.rollcall.client.services.Services;
import dev.rollcall.events.v1.WatchEventsRequest;
import dev.rollcall.registry.v1.WatchNodesRequest;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.function.Consumer;

/**
 * The API of one control plane. Safe to use from several threads; close it when it is no longer needed. Failures are
 * RollcallException.
 */
public final class Client extends Services implements AutoCloseable {
  private final Map<String, Connection> connections;

  private Client(Map<String, Calls> calls, Map<String, Connection> connections) {
    super(calls);
    this.connections = connections;
  }

  /** A client that finds the control plane as the command line does. Throws ConfigurationException. */
  public static Client create() {
    return create(new ClientOptions());
  }

  /** A client by these options; the first call connects. Throws ConfigurationException. */
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

  /** Every event from now on. */
  public EventWatch watchEvents() {
    return watchEvents(WatchEventsRequest.getDefaultInstance(), null);
  }

  /** Events that match, from a bookmark on, or from where the request says for null. */
  public EventWatch watchEvents(WatchEventsRequest request, String bookmark) {
    return watchEvents(request, bookmark, EventWatch.GIVE_UP_AFTER);
  }

  /**
   * Events as they happen, over restarts of the control plane: none missing, none twice. Iterating throws
   * RollcallException when the log cannot be read from there ({@link Reason#REVISION_COMPACTED}), and when nothing was
   * heard for {@code giveUpAfter}; null waits without end. Throws IllegalArgumentException for what is no bookmark.
   */
  public EventWatch watchEvents(WatchEventsRequest request, String bookmark, Duration giveUpAfter) {
    Bookmark from = bookmark == null ? null : Bookmark.parse(bookmark);
    return new EventWatch(events, new EventPosition(request, from), giveUpAfter);
  }

  /** Every node, kept in memory. */
  public NodeCache nodeCache() {
    return nodeCache(WatchNodesRequest.getDefaultInstance(), change -> {});
  }

  /** The nodes that match, kept in memory; {@code onChange} is called for every change. */
  public NodeCache nodeCache(WatchNodesRequest request, Consumer<NodeChange> onChange) {
    return new NodeCache(registry, request, onChange);
  }

  /** Ends every call and connection. */
  @Override
  public void close() {
    connections.values().forEach(Connection::close);
  }
}
