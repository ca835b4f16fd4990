"""Every node of a control plane, kept in memory and up to date: list, then watch."""

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
    """A local copy of the nodes that match a request, kept by a thread of its own.

    It survives restarts of the control plane. ``on_change`` is called in that thread for every change. What it raises,
    and a failure that no repetition mends, end the cache: then every method raises that.
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
        """Wait until every node is there. Raises RollcallError."""
        with self._lock:
            done = self._lock.wait_for(lambda: self._view.is_synced or self._failure is not None, timeout)
            self._raise_failure()
        if not done:
            raise TimedOutError(grpc.StatusCode.DEADLINE_EXCEEDED, f"the nodes did not come within {timeout:g} s")

    def get(self, node_id: str) -> node_pb2.Node | None:
        """The node of this id; None where there is none."""
        with self._lock:
            self._raise_failure()
            return self._view.nodes.get(node_id)

    def list(self) -> list[node_pb2.Node]:
        """All nodes, in no order."""
        with self._lock:
            self._raise_failure()
            return [*self._view.nodes.values()]

    def close(self) -> None:
        """Stop following. Wait up to 5 s for a call of ``on_change``, unless that call is the one that closes."""
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
        except BaseException as error:  # Also one of on_change: what is not followed must not be taken for current.
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
            except ConfigurationError as error:  # A token's file is away while it is replaced.
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
