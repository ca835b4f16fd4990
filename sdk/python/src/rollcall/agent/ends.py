"""Converts the end of a stream or a call from its wire format."""

from __future__ import annotations

import grpc

from ..errors import error_of_rpc
from ..health.v1 import health_pb2
from ..node.v1 import error_reason_pb2
from .next_step import End
from .pace import ms_of

_ACTIONS = {health_pb2.GO_AWAY_ACTION_REGISTER: "REGISTER", health_pb2.GO_AWAY_ACTION_STOP: "STOP"}


def end_of_go_away(go_away: health_pb2.GoAway) -> End:
    """Convert a GoAway. A reason that a newer server added has no name in this version."""
    found = error_reason_pb2.ErrorReason.DESCRIPTOR.values_by_number.get(go_away.reason)
    reason = "" if found is None or found.number == 0 else found.name.removeprefix("ERROR_REASON_")
    retry_after = ms_of(go_away.retry_after) if go_away.HasField("retry_after") else None
    action = _ACTIONS.get(go_away.action, "")
    return End("refused", reason, go_away.message, retry_after, action, go_away.log_id)


def end_of_status(error: grpc.RpcError | None, is_reached: bool) -> End:
    """Convert the final status of a stream; None is a normal end.

    If the stream received nothing and the error has no Rollcall reason, the error does not come from
    a health replica, so the end is unreachable.
    """
    if error is None:
        if is_reached:
            return End("refused", message="the server closed the stream")
        return End("unreachable", message="the stream was closed before its first frame")
    end = end_of_call(error)
    return End("refused", message=end.message) if end.kind == "unreachable" and is_reached else end


def end_of_call(error: grpc.RpcError) -> End:
    """Convert the failure of a call. It is refused if the server gave a reason, and unreachable
    otherwise.
    """
    found = error_of_rpc(error)
    if found.reason == "":
        return End("unreachable", message=found.message)
    retry_after = None if found.retry_after is None else found.retry_after * 1000
    cast_out_by = found.metadata.get("logId", "")
    return End("refused", found.reason, found.message, retry_after, cast_out_by=cast_out_by)
