"""A kit for writing agents of Rollcall: programs that speak for a machine.

It does what the contract asks of an agent (registration, the stream, heartbeats at the pace told, moves, key rotation,
goodbyes, executions); the program says what the machine is and how it runs work. It needs the extra ``agent``:
``pip install rollcall-client[agent]``.

What is decided is in modules without I/O (agent_machine, session_machine, reports, desired_work, keys, next_step),
which are checked against sdk/conformance/vectors.
"""

from .executor import Execution, Executor, OutputPiece, Progress
from .kit import Agent, Options, Status
from .process_executor import ProcessExecutor
from .registrar import Tls

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
