"""The errors of the API, as exceptions with the server's reason."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import grpc
from google.protobuf import any_pb2
from google.rpc import error_details_pb2, status_pb2

Trailers = Iterable[tuple[str, str | bytes]]

_DETAILS_KEY = "grpc-status-details-bin"


class ConfigurationError(ValueError):
    """A context, an address or a file is unusable. The message says which of them, and where it was set."""


@dataclass(frozen=True)
class FieldViolation:
    """One invalid field of a request."""

    field: str
    """The path of the field, for example ``spec.resources.memory_bytes``."""
    description: str


# Compare failures by identity, like all exceptions, so that they can be keys and set members.
@dataclass(eq=False)
class RollcallError(Exception):
    """The failure of a call. Compare ``reason`` with the constants of :class:``rollcall.Reason``."""

    code: grpc.StatusCode
    message: str
    reason: str = ""
    """Identifies the failure for programs, for example ``NODE_NOT_FOUND``. Empty if the failure did not come from the
    server.
    """
    metadata: Mapping[str, str] = field(default_factory=dict)
    """Details of the reason."""
    retry_after: float | None = None
    """Seconds that the server asks to wait before a retry; None if it gave no delay."""
    violations: tuple[FieldViolation, ...] = ()

    def __str__(self) -> str:
        cause = self.reason or self.code.name
        return f"{cause}: {self.message}"


class UnreachableError(RollcallError):
    """No server responded, because there is no connection or because the server is shutting down."""


class RefusedError(RollcallError):
    """The server understood the call and refused it. The same call fails again until something changes."""


class OverloadedError(RollcallError):
    """The server has no capacity for the call now. ``retry_after`` says when to retry."""


class TimedOutError(RollcallError):
    """The deadline passed before a response arrived. The call may have had an effect. With a request id, it is safe to
    repeat.
    """


_CLASSES: Mapping[grpc.StatusCode, type[RollcallError]] = {
    grpc.StatusCode.UNAVAILABLE: UnreachableError,
    grpc.StatusCode.RESOURCE_EXHAUSTED: OverloadedError,
    grpc.StatusCode.DEADLINE_EXCEEDED: TimedOutError,
}


def error_of(code: grpc.StatusCode, message: str, trailers: Trailers | None) -> RollcallError:
    """Convert a status to an exception, with the details in its trailers."""
    reason = ""
    metadata: dict[str, str] = {}
    retry_after: float | None = None
    violations: list[FieldViolation] = []
    for detail in _details_of(trailers):
        if detail.Is(error_details_pb2.ErrorInfo.DESCRIPTOR):
            info = error_details_pb2.ErrorInfo()
            detail.Unpack(info)
            reason, metadata = info.reason, dict(info.metadata)
        elif detail.Is(error_details_pb2.RetryInfo.DESCRIPTOR):
            retry = error_details_pb2.RetryInfo()
            detail.Unpack(retry)
            retry_after = retry.retry_delay.seconds + retry.retry_delay.nanos / 1e9
        elif detail.Is(error_details_pb2.BadRequest.DESCRIPTOR):
            bad = error_details_pb2.BadRequest()
            detail.Unpack(bad)
            violations += [FieldViolation(one.field, one.description) for one in bad.field_violations]
    kind = _CLASSES.get(code, RefusedError)
    return kind(code, message, reason, metadata, retry_after, tuple(violations))


def error_of_rpc(error: grpc.RpcError | RollcallError) -> RollcallError:
    """Convert a gRPC error, of threads or asyncio, to an exception."""
    if isinstance(error, RollcallError):
        return error
    # Use Any, because the classes of gRPC's errors declare these methods only in comments.
    call: Any = error
    code: grpc.StatusCode = call.code() if hasattr(error, "code") else grpc.StatusCode.UNKNOWN
    details: str | None = call.details() if hasattr(error, "details") else None
    trailers: Trailers | None = call.trailing_metadata() if hasattr(error, "trailing_metadata") else None
    return error_of(code, details or code.name.lower().replace("_", " "), trailers)


def _details_of(trailers: Trailers | None) -> list[any_pb2.Any]:
    for key, value in trailers or ():
        if key == _DETAILS_KEY and isinstance(value, bytes):
            status = status_pb2.Status()
            try:
                status.ParseFromString(value)
            except Exception:  # A broken detail must not hide the failure itself.
                return []
            return list(status.details)
    return []
