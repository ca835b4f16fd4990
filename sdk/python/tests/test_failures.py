"""Tests that the agent continues if a part supplied by the program fails."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from rollcall.health.v1 import health_pb2
from rollcall.node.v1 import node_pb2
from rollcall.work.v1 import work_pb2

from rollcall.agent.executor import Executor
from rollcall.agent.kit import Agent, Options
from rollcall.agent.ledger import Ledger
from rollcall.agent.state_dir import Identity, Sentinel, fingerprint_of
from rollcall.agent.stream import Stream

_NOWHERE = "127.0.0.1:1"


async def _until(is_so: Callable[[], bool]) -> None:
    for _ in range(300):
        if is_so():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("timed out")


def _fail(*_: object) -> Any:
    raise RuntimeError("broken")


async def _wait_of(agent: Agent) -> None:
    running = asyncio.ensure_future(agent.run())
    try:
        await _until(lambda: agent.status.phase == "waiting")
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


def test_a_machine_that_cannot_be_read_ends_the_attempt(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    options = Options(_NOWHERE, "n", tmp_path / "state", info=cast(Callable[[], node_pb2.NodeInfo], _fail))
    asyncio.run(_wait_of(Agent(options)))
    assert "the machine cannot be read: RuntimeError: broken" in caplog.text


def test_a_token_that_is_no_text_ends_the_attempt(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = tmp_path / "token"
    file.write_bytes(b"\xff\xfe")
    asyncio.run(_wait_of(Agent(Options(_NOWHERE, "n", tmp_path / "state", join_token_file=file))))
    assert "the join token cannot be read" in caplog.text


def test_any_failure_of_a_start_is_told(tmp_path: Path) -> None:
    executor = cast(Executor, SimpleNamespace(start=_fail))
    log = logging.LoggerAdapter(logging.getLogger("test"), {})
    ledger = Ledger(tmp_path, "n", executor, log, lambda run: run(), lambda *_: None, lambda: 0.0)
    ledger._start(work_pb2.ExecutionReference(id="e"), b"")
    [seen] = ledger.observations(None)
    assert (seen.end_reason, seen.message) == (work_pb2.END_REASON_START_FAILED, "broken")


def test_an_execution_that_cannot_be_adopted_is_gone(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    def ledger_with(executor: SimpleNamespace) -> Ledger:
        log = logging.LoggerAdapter(logging.getLogger("test"), {})
        return Ledger(tmp_path, "n", cast(Executor, executor), log, lambda run: run(), lambda *_: None, lambda: 0.0)

    running = ledger_with(SimpleNamespace(start=lambda *_: None))
    running._start(work_pb2.ExecutionReference(id="e"), b"")
    assert running.is_running
    after = ledger_with(SimpleNamespace(adopt=_fail))
    after.recover()
    (seen,) = after.observations(None)
    assert (seen.end_reason, seen.message) == (work_pb2.END_REASON_GONE, "it cannot be adopted: broken")
    assert "an execution cannot be adopted" in caplog.text


def test_a_stop_that_fails_leaves_the_execution_as_it_is(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    executor = cast(Executor, SimpleNamespace(start=lambda *_: None, stop=_fail))
    log = logging.LoggerAdapter(logging.getLogger("test"), {})
    ledger = Ledger(tmp_path, "n", executor, log, lambda run: run(), lambda *_: None, lambda: 0.0)
    reference = work_pb2.ExecutionReference(id="e")
    ledger._start(reference, b"")
    ledger._stop(reference)
    assert ledger.is_running
    assert "an execution cannot be stopped" in caplog.text


def test_two_agents_cannot_share_a_state_directory(tmp_path: Path) -> None:
    options = Options(_NOWHERE, "n", tmp_path / "state")
    first = Agent(options)
    with pytest.raises(OSError, match="another agent uses this state directory"):
        Agent(options)
    asyncio.run(_wait_of(first))
    Agent(options).identity.release()


def test_the_sentinel_names_the_key_that_was_adopted(tmp_path: Path) -> None:
    identity = Identity(tmp_path)
    before = identity.state.current
    identity.write_sentinel(Sentinel("n", before, "c", ("h:1",)))
    key = fingerprint_of(identity.prepare_next())
    identity.become(identity.state.after_accepted(key))
    found = identity.read_sentinel()
    assert found is not None and found.key_fingerprint == key != before
    identity.release()


def test_a_path_that_takes_no_frames_ends_the_stream(tmp_path: Path) -> None:
    async def run() -> None:
        agent = Agent(Options(_NOWHERE, "n", tmp_path / "state"))
        stream = Stream(agent, _NOWHERE, agent._state.pace)
        for _ in range(513):
            stream._send(health_pb2.HeartbeatRequest())
        await _until(lambda: stream.state.phase == "ended")

    asyncio.run(run())


def test_any_failure_ends_the_stream(tmp_path: Path) -> None:
    async def frames(_: object) -> AsyncIterator[object]:
        yield health_pb2.HeartbeatResponse()
        raise RuntimeError("broken")

    async def close(_: object) -> None:
        pass

    async def run() -> None:
        agent = Agent(Options(_NOWHERE, "n", tmp_path / "state"))
        stream = Stream(agent, _NOWHERE, agent._state.pace)
        channel = SimpleNamespace(stream_stream=lambda *_, **__: frames, close=close)
        stream._channel = cast(Any, channel)
        await _until(lambda: stream.state.phase == "ended")

    asyncio.run(run())
