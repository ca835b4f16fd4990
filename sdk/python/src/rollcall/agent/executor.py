"""What runs executions: to be written for each kind of machine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from ..node.v1 import node_pb2
from ..work.v1 import work_pb2


@dataclass(frozen=True)
class Execution:
    """What an Executor runs."""

    id: str
    """Unique for ever, 64 characters at most, and of any characters: hash it before it becomes a file's name."""
    node_id: str
    index: int
    """Its number within its job, from 0."""
    ports: Mapping[str, int]
    """Ports granted to it, by label."""
    gpus: tuple[str, ...]
    """UUIDs of the GPUs granted to it."""
    spec: work_pb2.ExecutionSpec


@dataclass(frozen=True)
class Progress:
    """What becomes of an execution."""

    has_ended: bool = False
    reason: work_pb2.EndReason = work_pb2.END_REASON_UNSPECIFIED
    """Reason of an end. An end after stop() is told as STOPPED whatever is here."""
    exit_code: int | None = None
    signal: str = ""
    """Name of the signal that ended it, for example "SIGKILL"."""
    message: str = ""


@dataclass(frozen=True)
class OutputPiece:
    """A part of what an execution wrote."""

    offset: int
    data: bytes
    is_end: bool
    """Nothing follows, and the execution has ended."""


Tell = Callable[[Progress], None]


class Executor(Protocol):
    """Runs executions. Its methods are called one at a time, and must return soon.

    read_output() alone is called beside them, in threads.

    ``tell`` may be called from any thread.
    """

    def capacity(self) -> node_pb2.WorkCapacity:
        """What the machine offers to executions.

        ``limits`` and ``lacks`` have to be true: a job is not placed where memory or disk that it asks for are not
        offered, nor where what it needs is lacking. What comes all the same is refused by start().
        """

    def start(self, execution: Execution, tell: Tell) -> None:
        """Start an execution, whose id it has never been given before.

        Raises OSError or ValueError where it cannot be started; the text is shown to people. What becomes of it is
        told: that it runs, then its end.
        """

    def adopt(self, execution: Execution, tell: Tell) -> bool:
        """Go on with an execution that an earlier run of the agent started, or was about to.

        False: it is not there, how it ended is not known, and start() is not called for it. An exception counts as
        False, and its text is shown to people.
        """

    def stop(self, execution: Execution) -> None:
        """Ask an execution to end, as its spec says. Its end is told like any other."""

    def forget(self, execution_id: str) -> None:
        """Remove what is left of an execution that has ended."""

    def read_output(self, execution_id: str, stream: int, offset: int, tail: int, limit: int) -> OutputPiece:
        """Read a piece of output, of stream 1 or 2, from an offset or the last ``tail`` bytes. Raises OSError."""
