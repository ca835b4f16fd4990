"""The interface for running executions. Implement it for each kind of machine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from ..node.v1 import node_pb2
from ..work.v1 import work_pb2


@dataclass(frozen=True)
class Execution:
    """What an Executor starts."""

    id: str
    """Unique forever, with at most 64 characters. It can contain any characters, so hash it before you use it as a file
    name.
    """
    node_id: str
    index: int
    """The execution's number within its job, from 0."""
    ports: Mapping[str, int]
    """The ports granted to the execution, keyed by label."""
    gpus: tuple[str, ...]
    """The UUIDs of the GPUs granted to the execution."""
    spec: work_pb2.ExecutionSpec


@dataclass(frozen=True)
class Progress:
    """A change to an execution."""

    has_ended: bool = False
    reason: work_pb2.EndReason = work_pb2.END_REASON_UNSPECIFIED
    """Why the execution ended. After stop(), the agent always reports STOPPED."""
    exit_code: int | None = None
    signal: str = ""
    """The name of the signal that ended the execution, for example "SIGKILL"."""
    message: str = ""


@dataclass(frozen=True)
class OutputPiece:
    """A part of an execution's output."""

    offset: int
    data: bytes
    is_end: bool
    """Whether the execution has ended and this piece is the last."""


Tell = Callable[[Progress], None]


class Executor(Protocol):
    """Runs executions. The agent calls its methods one at a time, and they must return quickly.

    Only read_output() is called concurrently, in threads.

    ``tell`` can be called from any thread.
    """

    def capacity(self) -> node_pb2.WorkCapacity:
        """Return what the machine offers to executions.

        Report ``limits`` and ``lacks`` accurately, because the scheduler places a job only on nodes with the memory,
        disk and features that the job asks for. start() must still refuse an execution that cannot run.
        """

    def start(self, execution: Execution, tell: Tell) -> None:
        """Start an execution with an id that it has not received before.

        Raises OSError or ValueError if the execution cannot be started; users see the text of the error. Report through
        ``tell`` first that the execution is running, then that it has ended.
        """

    def adopt(self, execution: Execution, tell: Tell) -> bool:
        """Take over an execution that an earlier run of the agent started or was about to start.

        Return False if the execution is missing. The agent then reports it as GONE and never calls start() for it. An
        exception counts as False, and users see its text.
        """

    def stop(self, execution: Execution) -> None:
        """Ask an execution to end in the way its spec requires. Report the end through ``tell``, like any other end."""

    def forget(self, execution_id: str) -> None:
        """Remove what an ended execution left behind."""

    def read_output(self, execution_id: str, stream: int, offset: int, tail: int, limit: int) -> OutputPiece:
        """Read output of stream 1 or 2, from an offset or from ``tail`` bytes before the end. Raises OSError."""
