"""Tests the executor that runs executions as processes."""

from __future__ import annotations

import json
import os
import queue
from pathlib import Path

import pytest
from rollcall.work.v1 import work_pb2

from rollcall.agent.executor import Execution, Progress
from rollcall.agent.process_executor import ProcessExecutor, age_of, expand

_VECTORS = Path(__file__).resolve().parents[2] / "conformance" / "vectors"


@pytest.mark.parametrize("it", json.loads((_VECTORS / "expansions.json").read_text(encoding="utf-8")))
def test_expands_as_the_keeper_does(it: dict[str, str]) -> None:
    assert expand(it["word"], {"a": "1"}) == it["expanded"]


@pytest.mark.parametrize("kind", ["link", "pipe"])
def test_reads_nothing_that_an_execution_put_in_place(kind: str, tmp_path: Path) -> None:
    executor = ProcessExecutor(tmp_path / "executions", may_be_own_user=True)
    secret = tmp_path / "secret"
    secret.write_text("7")
    home = executor._home("e")
    home.mkdir()
    for name in ("1", "2", "exit", "pid"):
        if kind == "link":
            (home / name).symlink_to(secret)
        else:
            os.mkfifo(home / name)
    for stream in (1, 2):
        with pytest.raises(OSError):
            executor.read_output("e", stream, 0, 0, 100)
    execution = Execution("e", "n", 0, {}, (), work_pb2.ExecutionSpec())
    assert not executor.adopt(execution, lambda _: None)
    assert executor._end_of("e", work_pb2.END_REASON_EXITED).signal == "SIGKILL"


def test_counts_run_time_without_the_wall_clock(tmp_path: Path) -> None:
    spec = work_pb2.ExecutionSpec()
    spec.process.command.extend(["/bin/sh", "-c", "sleep 60"])
    spec.max_run_time.FromSeconds(1800)
    execution = Execution("e", "n", 0, {}, (), spec)
    first = ProcessExecutor(tmp_path / "executions", may_be_own_user=True)
    told: queue.Queue[Progress] = queue.Queue()
    first.start(execution, told.put)
    told.get(timeout=10)
    path = first._home("e") / "pid"
    while not path.exists() or not path.read_text():
        pass
    # Make the file an hour old, as it would appear after a clock change.
    os.utime(path, (path.stat().st_mtime - 3600,) * 2)
    assert age_of(int(path.read_text())) < 60
    first.stop(execution)
    assert told.get(timeout=10).reason == work_pb2.END_REASON_EXITED


def test_ends_the_output_of_what_was_killed(tmp_path: Path) -> None:
    executor = ProcessExecutor(tmp_path / "executions", may_be_own_user=True)
    spec = work_pb2.ExecutionSpec()
    spec.process.command.extend(["/bin/sh", "-c", "trap '' TERM; echo out; sleep 60; sleep 60"])
    spec.process.stop.grace.FromMilliseconds(10)
    spec.max_run_time.FromMilliseconds(500)
    told: queue.Queue[Progress] = queue.Queue()
    executor.start(Execution("e", "n", 0, {}, (), spec), told.put)
    told.get(timeout=10)
    end = told.get(timeout=10)
    assert (end.reason, end.signal) == (work_pb2.END_REASON_DEADLINE_EXCEEDED, "SIGKILL")
    piece = executor.read_output("e", 1, 0, 0, 100)
    assert (piece.data, piece.is_end) == (b"out\n", True)


def test_tells_what_it_lacks_and_refuses_it(tmp_path: Path) -> None:
    executor = ProcessExecutor(tmp_path, may_be_own_user=True)
    assert list(executor.capacity().lacks) == ["checks", "secrets", "stop-on-agent-after"]
    assert (list(executor.capacity().limits), executor.capacity().memory_bytes) == ([], 0)
    command = ["/bin/true"]
    for spec in (
        work_pb2.ExecutionSpec(process=work_pb2.ProcessTask(command=command), check=work_pb2.Check()),
        work_pb2.ExecutionSpec(process=work_pb2.ProcessTask(command=command, secret_env={"A": "a"})),
        work_pb2.ExecutionSpec(process=work_pb2.ProcessTask(command=command), stop_on_agent_after={"seconds": 60}),
    ):
        with pytest.raises(ValueError, match="does not support checks, secrets or stop_on_agent_after"):
            executor.start(Execution("e", "n", 0, {}, (), spec), lambda _: None)
