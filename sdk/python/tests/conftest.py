"""A separate control plane for the tests. It is a real process with a temporary data directory."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rollcall import Client, RollcallError

_BIN = os.environ.get("ROLLCALL_BIN", str(Path(__file__).resolve().parents[3] / "bin" / "rollcall"))
NODE = socket.gethostname()
_START_LIMIT = 180.0


def eventually(is_so: Callable[[], bool], limit: float = 120.0) -> None:
    """Wait until a condition is true."""
    end = time.monotonic() + limit
    while not is_so():
        assert time.monotonic() < end, "timed out"
        time.sleep(0.05)


class ControlPlane:
    """A running `rollcall up`. It keeps its ports when it restarts."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.token_file = directory / "admin-token"
        ports = _free_ports(4)
        self.server = f"127.0.0.1:{ports[0]}"
        names = ("port", "agent-port", "probe-port", "internal-port")
        self._flags = [f"--{name}={port}" for name, port in zip(names, ports, strict=True)]
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the process, and wait until it responds."""
        log = open(self.directory.parent / "up.log", "ab")
        command = [_BIN, "up", f"--data-dir={self.directory}", *self._flags]
        self._process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        log.close()
        eventually(self._answers, _START_LIMIT)

    def kill(self) -> None:
        """Kill the process, as in a crash."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """Stop the process normally."""
        self._end(signal.SIGTERM)

    def client(self, **options: object) -> Client:
        """Return a client with the admin's token."""
        return Client(self.server, token_file=self.token_file, **options)  # type: ignore[arg-type]

    def _answers(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, (self.directory.parent / "up.log").read_text()
        if not self.token_file.exists():
            return False
        with self.client(timeout=1.0) as client, contextlib.suppress(RollcallError):
            client.registry.get_cluster_summary()
            return True
        return False

    def _end(self, how: signal.Signals) -> None:
        if self._process is None:
            return
        self._process.send_signal(how)
        self._process.wait(60)
        self._process = None


@pytest.fixture(scope="session")
def control_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """One control plane for all tests, with this machine as its only node."""
    plane = ControlPlane(tmp_path_factory.mktemp("rollcall") / "data")
    plane.directory.mkdir(mode=0o700)
    plane.start()
    yield plane
    plane.stop()


def _free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
