package dev.rollcall.client;

import dev.rollcall.node.v1.Node;
import dev.rollcall.registry.v1.WatchNodesRequest;
import dev.rollcall.registry.v1.WatchNodesResponse;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** The nodes known from a watch. Does no I/O, but receives every message and every failure. */
final class NodeView {
  private static final Set<String> BEGIN_AGAIN = Set.of(Reason.REVISION_COMPACTED, Reason.INVALID_RESUME_TOKEN);

  private final WatchNodesRequest request;
  private final Map<String, Node> nodes = new HashMap<>();
  private String token = "";
  // The ids received so far in a snapshot; null outside a snapshot.
  private Set<String> snapshotIds = new HashSet<>();
  private boolean isSynced;

  NodeView(WatchNodesRequest request) {
    this.request = request.toBuilder().clearStart().build();
  }

  /** The nodes, keyed by id. */
  Map<String, Node> nodes() {
    return nodes;
  }

  /** Whether a snapshot has ever been completed. */
  boolean isSynced() {
    return isSynced;
  }

  /** The request that resumes the watch, or starts with a snapshot. */
  WatchNodesRequest nextRequest() {
    if (!token.isEmpty()) return request.toBuilder().setResumeToken(token).build();
    snapshotIds = new HashSet<>();
    return request;
  }

  /** Applies a message and returns what changed. */
  List<NodeChange> apply(WatchNodesResponse message) {
    List<NodeChange> changes = new ArrayList<>();
    for (var change : message.getChangesList()) {
      switch (change.getChangeCase()) {
        case REMOVED_ID -> remove(change.getRemovedId(), changes);
        case UPSERTED -> upsert(change.getUpserted(), changes);
        case CHANGE_NOT_SET -> {}
      }
    }
    if (message.getSnapshotComplete()) {
      endSnapshot(changes);
      isSynced = true;
    }
    // Ignore a token from within a snapshot, because resuming there would start the snapshot again and repeat
    // the nodes already sent.
    if (snapshotIds == null) token = message.getResumeToken();
    return changes;
  }

  /** Handles a failure of the watch. Returns whether a new snapshot repairs it. */
  boolean failed(String reason) {
    if (token.isEmpty() || !BEGIN_AGAIN.contains(reason)) return false;
    token = "";
    return true;
  }

  private void upsert(Node node, List<NodeChange> changes) {
    if (snapshotIds != null) snapshotIds.add(node.getId());
    Node before = nodes.put(node.getId(), node);
    if (!node.equals(before)) changes.add(new NodeChange(before, node));
  }

  private void remove(String id, List<NodeChange> changes) {
    Node before = nodes.remove(id);
    if (before != null) changes.add(new NodeChange(before, null));
  }

  private void endSnapshot(List<NodeChange> changes) {
    if (snapshotIds == null) return;
    for (String id : List.copyOf(nodes.keySet())) {
      if (!snapshotIds.contains(id)) remove(id, changes);
    }
    snapshotIds = null;
  }
}
