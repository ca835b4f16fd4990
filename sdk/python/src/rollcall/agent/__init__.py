"""A kit for writing Rollcall agents: programs that represent a machine.

It does what the protocol requires of an agent (registration, the stream, heartbeats at the given rate, moves, key
rotation, goodbyes, executions); the program describes the machine and runs its work. It needs the extra ``agent``:
``pip install rollcall-client[agent]``.

All decisions are made in modules without I/O (agent_machine, session_machine, reports, desired_work, keys, next_step),
which are tested with sdk/conformance/vectors.
"""

from .executor import Execution, Executor, OutputPiece, Progress
from .kit import Agent, Options, Status
from .process_executor import ProcessExecutor
from .trust import Tls

__all__ = [
    "Agent",
    "Execution",
    "Executor",
    "Options",
    "OutputPiece",
    "ProcessExecutor",
    "Progress",
    "Status",
    "Tls",
]
