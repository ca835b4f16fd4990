"""Keeps the nodes of a control plane in memory and up to date. It lists them, then watches for changes."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable

import grpc

from .calls import Stream
from .client import SILENCE, Client
from .errors import ConfigurationError, RollcallError, TimedOutError, UnreachableError
from .node.v1 import node_pb2
from .node_view import NodeChange, NodeView
from .registry.v1 import registry_pb2
from .retry import wait_before_resume


class NodeCache:
    """A local copy of the nodes that match a request, kept up to date by a separate thread.

    The cache survives restarts of the control plane. Its thread calls ``on_change`` for every change. An exception
    from ``on_change``, or a failure that a retry cannot fix, ends the cache. After that, every method raises this
    exception or failure.
    """

    def __init__(
        self,
        client: Client,
        request: registry_pb2.WatchNodesRequest | None = None,
        *,
        on_change: Callable[[NodeChange], None] | None = None,
    ) -> None:
        self._client = client
        self._view = NodeView(request or registry_pb2.WatchNodesRequest())
        self._on_change = on_change
        self._lock = threading.Condition()
        self._failure: BaseException | None = None
        self._stream: Stream[registry_pb2.WatchNodesResponse] | None = None
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="rollcall-node-cache", daemon=True)
        self._thread.start()

    def wait_until_synced(self, timeout: float = 30.0) -> None:
        """Wait until every node is known. Raises RollcallError."""
        with self._lock:
            done = self._lock.wait_for(lambda: self._view.is_synced or self._failure is not None, timeout)
            self._raise_failure()
        if not done:
            raise TimedOutError(grpc.StatusCode.DEADLINE_EXCEEDED, f"the nodes did not arrive within {timeout:g} s")

    def get(self, node_id: str) -> node_pb2.Node | None:
        """The node with this id; None if there is none."""
        with self._lock:
            self._raise_failure()
            return self._view.nodes.get(node_id)

    def list(self) -> list[node_pb2.Node]:
        """All nodes, in no particular order."""
        with self._lock:
            self._raise_failure()
            return [*self._view.nodes.values()]

    def close(self) -> None:
        """Stop following. Waits up to 5 s for a running call of ``on_change``, unless that call is the one that closes
        the cache.
        """
        self._ending.set()
        if self._stream is not None:
            self._stream.close()
        if threading.current_thread() is not self._thread:
            self._thread.join(timeout=5.0)

    def __enter__(self) -> NodeCache:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _run(self) -> None:
        try:
            self._follow()
        except BaseException as error:  # Includes errors of on_change, because outdated nodes must not look current.
            with self._lock:
                self._failure = error
                self._lock.notify_all()
        finally:
            if self._stream is not None:
                self._stream.close()

    def _follow(self) -> None:
        breaks = 0
        while not self._ending.is_set():
            failure: RollcallError | None = None
            try:
                self._stream = self._client.registry.watch_nodes(self._view.next_request(), silence=SILENCE)
                if self._ending.is_set():
                    return
                for message in self._stream:
                    breaks = 0
                    self._take(message)
            except RollcallError as error:
                failure = error
            except ConfigurationError as error:  # A token file can be missing while it is replaced.
                failure = UnreachableError(grpc.StatusCode.UNAVAILABLE, str(error))
            if self._ending.is_set():
                return
            breaks += 1
            wait: float | None = 0.1
            if failure is not None and not self._view.failed(failure):
                wait = wait_before_resume(failure, breaks, random.random())
            if wait is None and failure is not None:
                raise failure
            self._ending.wait(wait)

    def _take(self, message: registry_pb2.WatchNodesResponse) -> None:
        with self._lock:
            changes = self._view.apply(message)
            self._lock.notify_all()
        if self._on_change is not None:
            for change in changes:
                if self._ending.is_set():
                    return
                self._on_change(change)

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise self._failure
