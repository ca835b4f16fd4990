"""Tests what calls do when a path dies silently, against a server in this process."""

from __future__ import annotations

import asyncio
import contextlib
import pickle
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent import futures
from pathlib import Path
from typing import Any

import grpc
import pytest
from rollcall.node.v1 import node_pb2
from rollcall.registry.v1 import registry_pb2

from certificates import Made, make
from rollcall import AsyncClient, Client, NodeCache, RollcallError, TimedOutError
from rollcall.connect import _read_pair
from rollcall.errors import error_of
from rollcall.retry import RetryPolicy

_REQUEST = registry_pb2.GetNodeRequest(node="n")


class SilentProxy:
    """Forwards connections until it falls silent. After that, open connections stay open but carry no data."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.server = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self.accepted = 0
        self._silenced = 0
        self._sockets: list[socket.socket] = [self._listener]
        threading.Thread(target=self._accept, daemon=True).start()

    def fall_silent(self) -> None:
        """Stop forwarding on the connections accepted so far."""
        self._silenced = self.accepted

    def close(self) -> None:
        """End every connection."""
        for each in self._sockets:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                upstream = socket.create_connection(("127.0.0.1", self._port))
                self.accepted += 1
                self._sockets += [client, upstream]
                for ends in ((client, upstream), (upstream, client)):
                    threading.Thread(target=self._carry, args=(*ends, self.accepted), daemon=True).start()

    def _carry(self, source: socket.socket, target: socket.socket, number: int) -> None:
        with contextlib.suppress(OSError):
            while piece := source.recv(65536):
                if number > self._silenced:
                    target.sendall(piece)
            target.close()


def _watch(_: Any, context: grpc.ServicerContext) -> Iterator[registry_pb2.WatchNodesResponse]:
    changes = [registry_pb2.NodeChange(upserted=node_pb2.Node(id=name)) for name in ("a", "b")]
    yield registry_pb2.WatchNodesResponse(changes=changes)
    ended = threading.Event()
    context.add_callback(ended.set)
    ended.wait(60)


def _get(request: registry_pb2.GetNodeRequest, context: grpc.ServicerContext) -> registry_pb2.GetNodeResponse:
    # The first attempt gets a third of the 9 s, which is too little; the second attempt gets the rest.
    if request.node == "slow" and context.time_remaining() < 4.0:
        ended = threading.Event()
        context.add_callback(ended.set)
        ended.wait(60)
    return registry_pb2.GetNodeResponse(node=node_pb2.Node(id=request.node))


def _registry() -> grpc.Server:
    """Create a registry that responds immediately, except for the node "slow"."""
    get = grpc.unary_unary_rpc_method_handler(
        _get,
        request_deserializer=registry_pb2.GetNodeRequest.FromString,
        response_serializer=registry_pb2.GetNodeResponse.SerializeToString,
    )
    watch = grpc.unary_stream_rpc_method_handler(
        _watch,
        request_deserializer=registry_pb2.WatchNodesRequest.FromString,
        response_serializer=registry_pb2.WatchNodesResponse.SerializeToString,
    )
    methods = {"GetNode": get, "WatchNodes": watch}
    server = grpc.server(futures.ThreadPoolExecutor(8))
    server.add_generic_rpc_handlers(
        (grpc.method_handlers_generic_handler("rollcall.registry.v1.RegistryService", methods),)
    )
    return server


@pytest.fixture
def port() -> Iterator[int]:
    """Start a registry, and yield its port."""
    server = _registry()
    yield_port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    yield yield_port
    server.stop(None).wait(60)


@pytest.fixture
def proxy(port: int) -> Iterator[SilentProxy]:
    """Start a path to the registry."""
    path = SilentProxy(port)
    yield path
    path.close()


def test_calls_go_over_a_new_path_when_one_dies(proxy: SilentProxy) -> None:
    with Client(proxy.server, token="none", timeout=15.0) as client:
        assert client.registry.get_node(_REQUEST).node.id == "n"
        proxy.fall_silent()
        with futures.ThreadPoolExecutor(8) as calls:
            answers = list(calls.map(lambda _: client.registry.get_node(_REQUEST).node.id, range(8)))
        assert answers == ["n"] * 8
        assert proxy.accepted == 2
        assert len(client._connections["registry"]._open) == 1


def test_asyncio_calls_go_over_a_new_path_when_one_dies(proxy: SilentProxy) -> None:
    async def run() -> None:
        async with AsyncClient(proxy.server, token="none", timeout=15.0) as client:
            await client.registry.get_node(_REQUEST)
            proxy.fall_silent()
            answers = await asyncio.gather(*(client.registry.get_node(_REQUEST) for _ in range(8)))
            assert [answer.node.id for answer in answers] == ["n"] * 8
            assert proxy.accepted == 2
            assert len(client._connections["registry"]._open) == 1

    asyncio.run(run())


def test_a_slow_server_gets_the_time_that_is_left(port: int) -> None:
    with Client(f"127.0.0.1:{port}", token="none", timeout=9.0) as client:
        assert client.registry.get_node(registry_pb2.GetNodeRequest(node="slow")).node.id == "slow"


def test_a_call_that_is_not_repeated_fails_and_the_next_finds_another_path(proxy: SilentProxy) -> None:
    with Client(proxy.server, token="none", timeout=2.0, retry=RetryPolicy(attempts=1)) as client:
        client.registry.get_node(_REQUEST)
        proxy.fall_silent()
        with pytest.raises(TimedOutError):
            client.registry.get_node(_REQUEST)
        assert client.registry.get_node(_REQUEST).node.id == "n"


def test_a_cache_can_be_closed_in_its_callback(port: int) -> None:
    calls: list[object] = []
    caches: futures.Future[NodeCache] = futures.Future()
    closed = threading.Event()

    def close(change: object) -> None:
        calls.append(change)
        caches.result(60).close()
        closed.set()

    with Client(f"127.0.0.1:{port}", token="none") as client:
        caches.set_result(NodeCache(client, on_change=close))
        assert closed.wait(60)
        cache = caches.result()
        cache._thread.join(60)
        cache.list()
        assert len(calls) == 1


@pytest.mark.parametrize("copy", [lambda it: it, lambda it: pickle.loads(pickle.dumps(it))])
def test_errors_are_keys_as_other_exceptions_are(copy: Callable[[RollcallError], RollcallError]) -> None:
    first = copy(error_of(grpc.StatusCode.NOT_FOUND, "no node", None))
    second = error_of(grpc.StatusCode.NOT_FOUND, "no node", None)
    assert len({first, second, first}) == 2
    assert str(first) == "NOT_FOUND: no node"


@pytest.fixture
def shown() -> list[Made]:
    """The authorities of a TLS server. The last authority signs the server's certificate."""
    return [make("former")]


@pytest.fixture
def secure_port(shown: list[Made]) -> Iterator[int]:
    """Start a registry with TLS, and yield its port."""

    def pair() -> grpc.ServerCertificateConfiguration:
        own = make("server", shown[-1], False)
        return grpc.ssl_server_certificate_configuration([(own.key_pem, own.pem)])

    server = _registry()
    secure_port = server.add_secure_port("127.0.0.1:0", grpc.dynamic_ssl_server_credentials(pair(), pair))
    server.start()
    yield secure_port
    server.stop(None).wait(60)


def test_replaced_authority_file_counts(shown: list[Made], secure_port: int, tmp_path: Path) -> None:
    file = tmp_path / "ca.pem"
    file.write_bytes(shown[-1].pem)
    with Client(f"https://127.0.0.1:{secure_port}", token="none", ca_file=file) as client:
        assert client.registry.get_node(_REQUEST).node.id == "n"
        # The file is half written, so the existing connection still serves the call.
        file.write_bytes(b"-----BEGIN CERT")
        assert client.registry.get_node(_REQUEST).node.id == "n"
        shown.append(make("next"))
        file.write_bytes(shown[-1].pem)
        assert client.registry.get_node(_REQUEST).node.id == "n"
        assert len(client._connections["registry"]._open) == 1


def test_half_replaced_pair_is_not_used(shown: list[Made], secure_port: int, tmp_path: Path) -> None:
    ca, certificate, key = (tmp_path / name for name in ("ca.pem", "cert.pem", "key.pem"))
    former, following = make("former-client"), make("next-client")
    ca.write_bytes(shown[-1].pem)
    certificate.write_bytes(former.pem)
    key.write_bytes(former.key_pem)
    pair = (certificate, key)
    with Client(f"https://127.0.0.1:{secure_port}", token="none", ca_file=ca, client_certificate=pair) as client:
        client.registry.get_node(_REQUEST)
        first = client._connections["registry"]._current
        certificate.write_bytes(following.pem)
        client.registry.get_node(_REQUEST)
        assert client._connections["registry"]._current is first
        key.write_bytes(following.key_pem)
        client.registry.get_node(_REQUEST)
        assert client._connections["registry"]._current is not first


class _ReplacedWhenRead(type(Path())):  # type: ignore[misc]
    """A path whose file is replaced right after it is first read."""

    following = b""

    def read_bytes(self) -> bytes:
        content = super().read_bytes()
        if self.following:
            self.write_bytes(self.following)
        return content


def test_pair_replaced_while_it_is_read_matches(tmp_path: Path) -> None:
    former, following = make("former-client"), make("next-client")
    certificate, key = tmp_path / "cert.pem", _ReplacedWhenRead(tmp_path / "key.pem")
    certificate.write_bytes(following.pem)
    key.write_bytes(former.key_pem)
    key.following = following.key_pem
    assert _read_pair(certificate, key) == (following.pem, following.key_pem)


def test_asyncio_replaced_authority_file_counts(shown: list[Made], secure_port: int, tmp_path: Path) -> None:
    file = tmp_path / "ca.pem"
    file.write_bytes(shown[-1].pem)

    async def run() -> None:
        async with AsyncClient(f"https://127.0.0.1:{secure_port}", token="none", ca_file=file) as client:
            await client.registry.get_node(_REQUEST)
            shown.append(make("next"))
            file.write_bytes(shown[-1].pem)
            assert (await client.registry.get_node(_REQUEST)).node.id == "n"

    asyncio.run(run())
