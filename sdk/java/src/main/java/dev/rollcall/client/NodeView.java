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

/** The nodes that a watch has told of. Pure: it is told every message, and every failure. */
final class NodeView {
  private static final Set<String> BEGIN_AGAIN = Set.of(Reason.REVISION_COMPACTED, Reason.INVALID_RESUME_TOKEN);

  private final WatchNodesRequest request;
  private final Map<String, Node> nodes = new HashMap<>();
  private String token = "";
  // Ids that a snapshot has told so far; null outside of one.
  private Set<String> told = new HashSet<>();
  private boolean isSynced;

  NodeView(WatchNodesRequest request) {
    this.request = request.toBuilder().clearStart().build();
  }

  /** By id. */
  Map<String, Node> nodes() {
    return nodes;
  }

  /** Whether a snapshot was ever complete. */
  boolean isSynced() {
    return isSynced;
  }

  /** The request that goes on from here, or begins with a snapshot. */
  WatchNodesRequest nextRequest() {
    if (!token.isEmpty()) return request.toBuilder().setResumeToken(token).build();
    told = new HashSet<>();
    return request;
  }

  /** Takes a message in; answers what changed. */
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
    // A token from within a snapshot begins with a snapshot again: what was told until then is told once more.
    if (told == null) token = message.getResumeToken();
    return changes;
  }

  /** A watch failed; answers whether a snapshot mends it. */
  boolean failed(String reason) {
    if (token.isEmpty() || !BEGIN_AGAIN.contains(reason)) return false;
    token = "";
    return true;
  }

  private void upsert(Node node, List<NodeChange> changes) {
    if (told != null) told.add(node.getId());
    Node before = nodes.put(node.getId(), node);
    if (!node.equals(before)) changes.add(new NodeChange(before, node));
  }

  private void remove(String id, List<NodeChange> changes) {
    Node before = nodes.remove(id);
    if (before != null) changes.add(new NodeChange(before, null));
  }

  private void endSnapshot(List<NodeChange> changes) {
    if (told == null) return;
    for (String id : List.copyOf(nodes.keySet())) {
      if (!told.contains(id)) remove(id, changes);
    }
    told = null;
  }
}
