"""Tests what the agent kit trusts, with real handshakes."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from rollcall.node.v1 import node_pb2

from certificates import Made, make
from rollcall.agent.authorities import authorities_digest
from rollcall.agent.trust import Tls, Trust, UntrustedError


@pytest.fixture
def ours() -> Made:
    return make("ours")


@pytest.fixture
def endpoint(ours: Made, tmp_path: Path) -> Iterator[str]:
    """Start a server with a test certificate, and yield its port."""
    own = make("server", ours, False)
    file = tmp_path / "server.pem"
    file.write_bytes(own.pem + own.key_pem)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                peer, _ = listener.accept()
            except OSError:
                return
            try:
                context.wrap_socket(peer, server_side=True).close()
            except OSError:
                peer.close()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    yield f"127.0.0.1:{listener.getsockname()[1]}"
    # Wake the accepting thread, because close() does not.
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()
    thread.join()


def trust_of(authority: Made, directory: Path) -> Trust:
    return Trust(Tls(ca_fingerprint=authority.fingerprint), "127.0.0.1", 1, directory)


def keep(directory: Path, authority: Made, *others: Made) -> None:
    text = f"# authorities that follow from {authority.fingerprint}\n".encode()
    (directory / "authorities.pem").write_bytes(text + b"".join(it.pem for it in (authority, *others)))


def test_announced_authorities_are_kept(ours: Made, endpoint: str, tmp_path: Path) -> None:
    others = make("others")
    cross_signed = make("cross", ours)
    trust = trust_of(ours, tmp_path)
    with pytest.raises(UntrustedError, match="not been fetched yet"):
        trust.for_connection()
    keep(tmp_path, ours)
    assert trust.digest == authorities_digest([])
    refused = trust.hear([others.der], endpoint)
    assert (refused.kind, trust.digest) == ("refuse", authorities_digest([]))
    assert trust.hear([cross_signed.der], endpoint).kind == "refuse"
    both = tuple(sorted([ours.fingerprint, others.fingerprint]))
    assert trust.hear([ours.der, others.der, cross_signed.der], endpoint).fingerprints == both
    assert trust.hear([others.der, ours.der], endpoint).kind == "same"
    assert trust.digest == authorities_digest(both)
    with pytest.raises(ValueError):
        trust.hear([b"no certificate"], endpoint)
    # The kept authorities survive a restart. With another fingerprint, earlier announcements are ignored.
    known = trust_of(ours, tmp_path).for_connection()
    assert known is not None and known.ca is not None
    assert known.ca.count(b"BEGIN CERTIFICATE") == 2
    assert trust_of(others, tmp_path).describe().authorities == [others.fingerprint]
    (tmp_path / "authorities.pem").write_text("damaged")
    with pytest.raises(UntrustedError, match="not been fetched yet"):
        trust.for_connection()


def test_server_that_is_away_says_nothing_of_authorities(ours: Made, tmp_path: Path) -> None:
    keep(tmp_path, ours)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        away = f"127.0.0.1:{listener.getsockname()[1]}"
    with pytest.raises(OSError):
        trust_of(ours, tmp_path).hear([ours.der], away)


def test_file_is_read_for_each_connection(ours: Made, tmp_path: Path) -> None:
    file = tmp_path / "ca.pem"
    file.write_bytes(ours.pem)
    trust = Trust(Tls(ca_file=file, server_name="cp"), "127.0.0.1", 1, tmp_path)
    others = make("others")
    file.write_bytes(ours.pem + others.pem)
    used = trust.for_connection()
    assert used is not None and used.ca == ours.pem + others.pem
    told = trust.describe()
    assert (told.source, told.server_name) == (node_pb2.TRUST_SOURCE_FILE, "cp")
    assert list(told.authorities) == sorted([ours.fingerprint, others.fingerprint])
    file.unlink()
    with pytest.raises(UntrustedError, match="cannot read"):
        trust.for_connection()


def test_report_without_an_authority(ours: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert Trust(None, "h", 1, tmp_path).describe() == node_pb2.NodeTrust(source=node_pb2.TRUST_SOURCE_NONE)
    system = Trust(Tls(), "h", 1, tmp_path)
    assert system.hear([ours.der], "127.0.0.1:1").kind == "same"
    # gRPC does not trust the authority until the program adds it.
    told = node_pb2.NodeTrust(source=node_pb2.TRUST_SOURCE_SYSTEM, server_name="h")
    assert system.describe() == told
    (tmp_path / "roots.pem").write_bytes(ours.pem)
    monkeypatch.setenv("GRPC_DEFAULT_SSL_ROOTS_FILE_PATH", str(tmp_path / "roots.pem"))
    told.authorities.append(ours.fingerprint)
    assert system.describe() == told


def test_contradictions_are_refused(ours: Made, tmp_path: Path) -> None:
    for wrong in (Tls(ca=ours.pem, ca_fingerprint=ours.fingerprint), Tls(ca_fingerprint="sha256:ab")):
        with pytest.raises(ValueError):
            Trust(wrong, "h", 1, tmp_path)
