"""The nodes known from a watch. Does no I/O."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from .errors import RollcallError
from .node.v1 import node_pb2
from .reasons import Reason
from .registry.v1 import registry_pb2

_BEGIN_AGAIN = frozenset({Reason.REVISION_COMPACTED, Reason.INVALID_RESUME_TOKEN})


@dataclass(frozen=True)
class NodeChange:
    """One node before and after a change. ``before`` is None for an added node, ``after`` for a removed one."""

    before: node_pb2.Node | None
    after: node_pb2.Node | None


class NodeView:
    """A local copy of the nodes that match a request's filters. Pass it every message and every failure."""

    def __init__(self, request: registry_pb2.WatchNodesRequest) -> None:
        self._request = registry_pb2.WatchNodesRequest()
        self._request.CopyFrom(request)
        self._request.ClearField("start")
        self._token = ""
        self._nodes: dict[str, node_pb2.Node] = {}
        # The ids received so far in a snapshot; None outside a snapshot.
        self._snapshot_ids: set[str] | None = set()
        self.is_synced = False

    @property
    def nodes(self) -> Mapping[str, node_pb2.Node]:
        """The nodes, keyed by id."""
        return self._nodes

    def next_request(self) -> registry_pb2.WatchNodesRequest:
        """The request that resumes the watch, or starts with a snapshot."""
        request = registry_pb2.WatchNodesRequest()
        request.CopyFrom(self._request)
        if self._token:
            request.resume_token = self._token
        else:
            self._snapshot_ids = set()
        return request

    def apply(self, message: registry_pb2.WatchNodesResponse) -> list[NodeChange]:
        """Apply a message and return what changed."""
        changes = [change for one in message.changes if (change := self._apply_one(one)) is not None]
        if message.snapshot_complete:
            changes += self._end_snapshot()
            self.is_synced = True
        # Ignore a token from within a snapshot, because resuming there would start the snapshot again and
        # repeat the nodes already sent.
        if self._snapshot_ids is None:
            self._token = message.resume_token
        return changes

    def failed(self, error: RollcallError) -> bool:
        """Handle a failure of the watch. Returns whether a new snapshot repairs it."""
        if not self._token or error.reason not in _BEGIN_AGAIN:
            return False
        self._token = ""
        return True

    def _apply_one(self, change: registry_pb2.NodeChange) -> NodeChange | None:
        if change.WhichOneof("change") == "removed_id":
            before = self._nodes.pop(change.removed_id, None)
            return None if before is None else NodeChange(before, None)
        node = change.upserted
        if self._snapshot_ids is not None:
            self._snapshot_ids.add(node.id)
        before = self._nodes.get(node.id)
        self._nodes[node.id] = node
        return None if before == node else NodeChange(before, node)

    def _end_snapshot(self) -> list[NodeChange]:
        if self._snapshot_ids is None:
            return []
        gone = [node_id for node_id in self._nodes if node_id not in self._snapshot_ids]
        self._snapshot_ids = None
        return [NodeChange(self._nodes.pop(node_id), None) for node_id in gone]
