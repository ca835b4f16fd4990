"""Errors of the API, as exceptions that carry the server's reason."""

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
    """A context, an address or a file that cannot be used; the message says which, and where it came from."""


@dataclass(frozen=True)
class FieldViolation:
    """One field of a request that the server refused."""

    field: str
    """Path of the field, for example ``spec.resources.memory_bytes``."""
    description: str


# Two failures are the same only if they are one object, as for every exception: they can be keys and members of sets.
@dataclass(eq=False)
class RollcallError(Exception):
    """A call that failed. Compare ``reason`` with the constants of :class:`rollcall.Reason`."""

    code: grpc.StatusCode
    message: str
    reason: str = ""
    """The cause for programs, for example ``NODE_NOT_FOUND``; empty where the failure was not the server's word."""
    metadata: Mapping[str, str] = field(default_factory=dict)
    """Facts that belong to the reason."""
    retry_after: float | None = None
    """Seconds after which the server wants to be asked again; None where it says nothing."""
    violations: tuple[FieldViolation, ...] = ()

    def __str__(self) -> str:
        cause = self.reason or self.code.name
        return f"{cause}: {self.message}"


class UnreachableError(RollcallError):
    """There was no answer: no connection, or the server is about to stop."""


class RefusedError(RollcallError):
    """The server understood the call and refused it; the same call fails again until something changes."""


class OverloadedError(RollcallError):
    """The server has no room for the call now; ``retry_after`` says when to come back."""


class TimedOutError(RollcallError):
    """The deadline passed before an answer came. What a change did is unknown unless it had a request id."""


_CLASSES: Mapping[grpc.StatusCode, type[RollcallError]] = {
    grpc.StatusCode.UNAVAILABLE: UnreachableError,
    grpc.StatusCode.RESOURCE_EXHAUSTED: OverloadedError,
    grpc.StatusCode.DEADLINE_EXCEEDED: TimedOutError,
}


def error_of(code: grpc.StatusCode, message: str, trailers: Trailers | None) -> RollcallError:
    """The exception for a status, with the details that its trailers carry."""
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
    """The exception for an error of grpc, synchronous or asyncio."""
    if isinstance(error, RollcallError):
        return error
    # Its classes promise these methods in comments alone.
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
