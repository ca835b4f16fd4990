"""The client for programs with threads."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterator
from types import TracebackType

import grpc

from .bookmark import Bookmark, EventPosition
from .calls import CallOptions, Stream
from .connect import TlsTrust, channel_options, metadata_source
from .connection import Connection
from .errors import RollcallError
from .events.v1 import events_pb2
from .retry import RetryPolicy, wait_before_resume
from .seen_revision import SeenRevision
from .services import Services
from .target import SERVICES, Options, Target, resolve_target

# How many seconds a stream may be silent before it counts as broken. The server sends a message every 10 s.
SILENCE = 30.0


class Client(Services):
    """The API of one control plane. Several threads can use it. Close it when it is no longer needed.

    Without arguments, the client finds the control plane as the command line does, and connects at the first call.
    ``timeout`` is the limit of a call in seconds, including retries. ``ca_fingerprint`` is "sha256:" and 64
    hexadecimal digits. With it, the client fetches the authority from the server immediately, compares its
    fingerprint, and trusts only this authority. Raises ConfigurationError and, with ``ca_fingerprint``,
    UnreachableError.
    """

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

    def close(self) -> None:
        """End every call and connection."""
        for connection in self._connections.values():
            for channel in connection.end():
                channel.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def watch_events(
        self,
        request: events_pb2.WatchEventsRequest | None = None,
        *,
        bookmark: str | None = None,
        give_up_after: float | None = 300.0,
    ) -> EventWatch:
        """Watch events across restarts of the control plane. Iterating returns every event exactly once.

        The watch starts at ``bookmark``, or where ``request`` says. It raises RollcallError if the log no longer
        contains the start (``Reason.REVISION_COMPACTED``), or if nothing was received for ``give_up_after``
        seconds; None waits forever.
        """
        start = None if bookmark is None else Bookmark.parse(bookmark)
        position = EventPosition(request or events_pb2.WatchEventsRequest(), start)
        return EventWatch(self, position, give_up_after)


class EventWatch:
    """An iterator over events. Save ``bookmark`` together with the result of handling an event, and start there next
    time.
    """

    def __init__(self, client: Client, position: EventPosition, give_up_after: float | None) -> None:
        self._client = client
        self._position = position
        self._give_up_after = give_up_after
        self._stream: Stream[events_pb2.WatchEventsResponse] | None = None
        self._is_closed = False

    @property
    def bookmark(self) -> str | None:
        """The position after the last returned event; None if nothing was received yet."""
        bookmark = self._position.bookmark
        return None if bookmark is None else str(bookmark)

    def close(self) -> None:
        """End the watch, and with it the iteration. Any thread can call it."""
        self._is_closed = True
        if self._stream is not None:
            self._stream.close()

    def __enter__(self) -> EventWatch:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __iter__(self) -> Iterator[events_pb2.Event]:
        breaks = 0
        heard_at = time.monotonic()
        while not self._is_closed:
            self._stream = None
            try:
                self._stream = self._client.events.watch_events(self._position.next_request(), silence=SILENCE)
                if self._is_closed:
                    return
                for message in self._stream:
                    breaks = 0
                    for event in self._position.unseen(message):
                        self._position.passed(event)
                        yield event
                    self._position.completed(message)
                    heard_at = time.monotonic()
                failure = None
            except RollcallError as error:
                failure = error
            finally:
                if self._stream is not None:
                    self._stream.close()
            if self._is_closed:
                return
            breaks += 1
            wait = 0.0 if failure is None else wait_before_resume(failure, breaks, random.random())
            is_over = self._give_up_after is not None and time.monotonic() - heard_at > self._give_up_after
            if failure is not None and (wait is None or is_over):
                raise failure
            time.sleep(wait or 0.1)


def _connection(target: Target, name: str, trust: TlsTrust) -> Connection[grpc.Channel]:
    address = target.addresses[name]

    def dial(is_replacing: bool) -> grpc.Channel:
        options = channel_options(target, address, is_replacing)
        if not address.is_tls:
            return grpc.insecure_channel(address.authority, options)
        return grpc.secure_channel(address.authority, trust.credentials(address), options)

    return Connection(dial, lambda channel: channel.close(), trust.files(address))
