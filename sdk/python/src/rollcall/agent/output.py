"""Splits reports into parts, and sends the output of executions on separate calls."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable

import grpc
import grpc.aio

from ..health.v1 import health_pb2
from ..work.v1 import work_pb2
from .executor import Executor

_SERVE_LOGS = "/rollcall.health.v1.HealthService/ServeLogs"
# The maximum size of the observations in one frame, in bytes. A server accepts frames of 64 KiB; the rest is for the
# frame's other fields.
_MOST_PART_BYTES = 49_152
_MOST_PART_OBSERVATIONS = 1_000
# The bytes that the tag and length of one observation use.
_OVERHEAD_BYTES = 4
_PIECE_BYTES = 65_536
_LOOK_EVERY = 0.25


def report_parts(
    number: int, is_whole: bool, digest: int, observations: Iterable[work_pb2.ExecutionObservation]
) -> list[health_pb2.ExecutionReport]:
    """Split a report into frames that a server accepts. A report without observations fits in one frame."""
    parts = [health_pb2.ExecutionReport(number=number, whole=is_whole, digest=digest)]
    size = 0
    for one in observations:
        length = one.ByteSize() + _OVERHEAD_BYTES
        part = parts[-1]
        is_full = size + length > _MOST_PART_BYTES or len(part.observations) >= _MOST_PART_OBSERVATIONS
        if part.observations and is_full:
            part.more = True
            part = health_pb2.ExecutionReport(number=number, whole=is_whole, digest=digest)
            parts.append(part)
            size = 0
        part.observations.append(one)
        size += length
    return parts


async def send_output(channel: grpc.aio.Channel, request: health_pb2.LogRequest, executor: Executor | None) -> None:
    """Respond to a LogRequest. Send until the end of the output or, with ``follow``, until the execution has ended."""
    call = channel.stream_unary(
        _SERVE_LOGS,
        request_serializer=health_pb2.ServeLogsRequest.SerializeToString,
        response_deserializer=health_pb2.ServeLogsResponse.FromString,
    )
    try:
        await call(_pieces(request, executor))
    except grpc.RpcError:
        return  # The reader was notified or has disconnected.


async def _pieces(
    request: health_pb2.LogRequest, executor: Executor | None
) -> AsyncIterator[health_pb2.ServeLogsRequest]:
    yield health_pb2.ServeLogsRequest(token=request.token)
    try:
        if executor is None:
            raise FileNotFoundError
        async for piece in _pieces_of(request, executor):
            yield piece
    except OSError:
        yield health_pb2.ServeLogsRequest(failure="LOG_NOT_FOUND")


async def _pieces_of(request: health_pb2.LogRequest, executor: Executor) -> AsyncIterator[health_pb2.ServeLogsRequest]:
    places: dict[int, tuple[int, bool]] = {}
    for stream in (1, 2):
        if request.stream in (0, stream):
            # Read in a thread, so that a slow disk does not delay heartbeats.
            places[stream] = await asyncio.to_thread(_begin_of, request, executor, stream)
    while places:
        has_sent = False
        for stream, (offset, is_cut) in list(places.items()):
            read = executor.read_output
            piece = await asyncio.to_thread(read, request.execution_id, stream, offset, 0, _PIECE_BYTES)
            is_cut = is_cut or piece.offset > offset
            places[stream] = piece.offset + len(piece.data), is_cut and not piece.data
            if piece.is_end or (not request.follow and not piece.data):
                del places[stream]
            if piece.data:
                has_sent = True
                yield health_pb2.ServeLogsRequest(stream=stream, offset=piece.offset, data=piece.data, cut=is_cut)
        if places and not has_sent:
            await asyncio.sleep(_LOOK_EVERY)


def _begin_of(request: health_pb2.LogRequest, executor: Executor, stream: int) -> tuple[int, bool]:
    """Find where to start reading, and whether the beginning of the requested output is no longer kept.

    Reading starts at the latest of the positions in the request. The executor does not know when output was written,
    so a time filter matches all output.
    """
    is_second = stream == 2 and request.stream == 0
    begin = (request.stderr_offset if is_second else request.offset), False
    if request.tail_bytes > 0:
        tail = executor.read_output(request.execution_id, stream, 0, request.tail_bytes, 1)
        begin = max(begin, (tail.offset, False))
    if request.tail_lines > 0:
        found = _last_lines(request.execution_id, executor, stream, request.tail_lines)
        begin = found if found[0] > begin[0] else begin
    return begin


def _last_lines(execution_id: str, executor: Executor, stream: int, lines: int) -> tuple[int, bool]:
    """Find where the last lines begin. Reads backwards, and no more than necessary."""
    last = executor.read_output(execution_id, stream, 0, 1, 1)
    end = last.offset + len(last.data)
    is_at_end = True
    while end > 0:
        low = max(0, end - _PIECE_BYTES)
        begin, data = _read_between(execution_id, executor, stream, low, end)
        # A line break at the very end ends the last line and does not start a new one.
        at = len(data) - 1 if is_at_end and data.endswith(b"\n") else len(data)
        is_at_end = False
        while (at := data.rfind(b"\n", 0, at)) >= 0:
            lines -= 1
            if lines == 0:
                return begin + at + 1, False
        if begin > low:
            return begin, True
        end = low
    return 0, False


def _read_between(execution_id: str, executor: Executor, stream: int, low: int, end: int) -> tuple[int, bytes]:
    """Read a part of an output. If the beginning of the part is no longer kept, start at the first kept byte."""
    begin, data, at = low, b"", low
    while at < end:
        piece = executor.read_output(execution_id, stream, at, 0, end - at)
        if not piece.data or piece.offset >= end:
            return end, b""
        if piece.offset > at:
            begin, data = piece.offset, b""
        part = piece.data[: end - piece.offset]
        data += part
        at = piece.offset + len(part)
    return begin, data
