"""The client for asyncio."""

from __future__ import annotations

import asyncio
import os
import random
import time
from collections.abc import AsyncIterator

import grpc
import grpc.aio

from .bookmark import Bookmark, EventPosition
from .calls import CallOptions
from .client import SILENCE
from .connect import TlsTrust, channel_options, metadata_source
from .connection import Connection
from .errors import RollcallError
from .events.v1 import events_pb2
from .retry import RetryPolicy, wait_before_resume
from .seen_revision import SeenRevision
from .services import AsyncServices
from .target import SERVICES, Options, Target, resolve_target


class AsyncClient(AsyncServices):
    """The API of one control plane for asyncio, like :class:`rollcall.Client`. Create it inside a running loop."""

    def __init__(
        self,
        server: str | None = None,
        *,
        registry: str | None = None,
        health: str | None = None,
        admin: str | None = None,
        scheduler: str | None = None,
        token: str | None = None,
        token_file: str | os.PathLike[str] | None = None,
        ca_file: str | os.PathLike[str] | None = None,
        ca_fingerprint: str | None = None,
        server_name: str | None = None,
        client_certificate: tuple[str | os.PathLike[str], str | os.PathLike[str]] | None = None,
        context: str | None = None,
        timeout: float = 10.0,
        retry: RetryPolicy | None = None,
    ) -> None:
        options = Options(
            server,
            registry,
            health,
            admin,
            scheduler,
            token,
            token_file,
            ca_file,
            server_name,
            client_certificate,
            context,
            ca_fingerprint,
        )
        self.target: Target = resolve_target(options)
        trust = TlsTrust(self.target)
        self._connections = {name: _connection(self.target, name, trust) for name in SERVICES}
        policy, seen = retry or RetryPolicy(), SeenRevision()
        calls = {name: CallOptions(timeout, policy, metadata_source(self.target, name), seen) for name in SERVICES}
        super().__init__(self._connections, calls)

    async def close(self) -> None:
        """End every call and connection."""
        ended = [channel for connection in self._connections.values() for channel in connection.end()]
        await asyncio.gather(*(channel.close() for channel in ended))

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def watch_events(
        self,
        request: events_pb2.WatchEventsRequest | None = None,
        *,
        bookmark: str | None = None,
        give_up_after: float | None = 300.0,
    ) -> AsyncEventWatch:
        """Watch events, like :meth:`rollcall.Client.watch_events`."""
        start = None if bookmark is None else Bookmark.parse(bookmark)
        position = EventPosition(request or events_pb2.WatchEventsRequest(), start)
        return AsyncEventWatch(self, position, give_up_after)


class AsyncEventWatch:
    """An asynchronous iterator over events. Save ``bookmark`` together with the result of handling an event, and start
    there next time.
    """

    def __init__(self, client: AsyncClient, position: EventPosition, give_up_after: float | None) -> None:
        self._client = client
        self._position = position
        self._give_up_after = give_up_after

    @property
    def bookmark(self) -> str | None:
        """The position after the last returned event; None if nothing was received yet."""
        bookmark = self._position.bookmark
        return None if bookmark is None else str(bookmark)

    async def __aiter__(self) -> AsyncIterator[events_pb2.Event]:
        breaks = 0
        heard_at = time.monotonic()
        while True:
            stream = None
            failure = None
            try:
                stream = self._client.events.watch_events(self._position.next_request(), silence=SILENCE)
                async for message in stream:
                    breaks = 0
                    for event in self._position.unseen(message):
                        self._position.passed(event)
                        yield event
                    self._position.completed(message)
                    heard_at = time.monotonic()
            except RollcallError as error:
                failure = error
            finally:
                if stream is not None:
                    stream.close()
            breaks += 1
            wait = 0.0 if failure is None else wait_before_resume(failure, breaks, random.random())
            is_over = self._give_up_after is not None and time.monotonic() - heard_at > self._give_up_after
            if failure is not None and (wait is None or is_over):
                raise failure
            await asyncio.sleep(wait or 0.1)


def _connection(target: Target, name: str, trust: TlsTrust) -> Connection[grpc.aio.Channel]:
    address = target.addresses[name]

    def dial(is_replacing: bool) -> grpc.aio.Channel:
        options = channel_options(target, address, is_replacing)
        if not address.is_tls:
            return grpc.aio.insecure_channel(address.authority, options)
        return grpc.aio.secure_channel(address.authority, trust.credentials(address), options)

    return Connection(dial, _hang_up, trust.files(address))


# References to the calls that are ending. A task without a reference can be garbage-collected before it has ended.
_ENDING: set[asyncio.Future[None]] = set()


def _hang_up(channel: grpc.aio.Channel) -> None:
    ending = asyncio.ensure_future(channel.close())
    _ENDING.add(ending)
    ending.add_done_callback(_ENDING.discard)
