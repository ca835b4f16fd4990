"""Reports in parts, and the output of executions on calls of their own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable

import grpc
import grpc.aio

from ..health.v1 import health_pb2
from ..work.v1 import work_pb2
from .executor import Executor

_SERVE_LOGS = "/rollcall.health.v1.HealthService/ServeLogs"
# A server takes frames of 64 KiB; the rest is for what surrounds the observations.
_MOST_PART_BYTES = 49_152
_MOST_PART_OBSERVATIONS = 1_000
# Of tag and length, for each observation.
_OVERHEAD_BYTES = 4
_PIECE_BYTES = 65_536
_LOOK_EVERY = 0.25


def report_parts(
    number: int, is_whole: bool, digest: int, observations: Iterable[work_pb2.ExecutionObservation]
) -> list[health_pb2.ExecutionReport]:
    """Cut a report into frames that a server takes. One without observations is one frame."""
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
    """Answer a LogRequest until the output's end, or with ``follow`` until the execution has ended."""
    call = channel.stream_unary(
        _SERVE_LOGS,
        request_serializer=health_pb2.ServeLogsRequest.SerializeToString,
        response_deserializer=health_pb2.ServeLogsResponse.FromString,
    )
    try:
        await call(_pieces(request, executor))
    except grpc.RpcError:
        return  # The reader was told, or has gone.


async def _pieces(
    request: health_pb2.LogRequest, executor: Executor | None
) -> AsyncIterator[health_pb2.ServeLogsRequest]:
    yield health_pb2.ServeLogsRequest(token=request.token)
    places = {stream: (request.offset, request.tail_bytes) for stream in (1, 2) if request.stream in (0, stream)}
    while places:
        has_sent = False
        for stream, (offset, tail) in list(places.items()):
            try:
                if executor is None:
                    raise FileNotFoundError
                # A disk that is slow keeps no heartbeat waiting.
                read = executor.read_output
                piece = await asyncio.to_thread(read, request.execution_id, stream, offset, tail, _PIECE_BYTES)
            except OSError:
                yield health_pb2.ServeLogsRequest(failure="LOG_NOT_FOUND")
                return
            places[stream] = piece.offset + len(piece.data), 0
            if piece.is_end or (not request.follow and not piece.data):
                del places[stream]
            if piece.data:
                has_sent = True
                yield health_pb2.ServeLogsRequest(stream=stream, offset=piece.offset, data=piece.data)
        if places and not has_sent:
            await asyncio.sleep(_LOOK_EVERY)
