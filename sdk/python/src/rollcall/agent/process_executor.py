"""Runs executions as processes of this machine, on Linux."""

from __future__ import annotations

import os
import pwd
import re
import shutil
import signal
import stat
import subprocess
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO

from ..node.v1 import node_pb2
from ..work.v1 import work_pb2
from .executor import Execution, OutputPiece, Progress, Tell
from .ledger import file_name_of

# The shell script that runs an execution, even while no agent is running. Only one shim can create the file `pid`, so
# an execution starts only once even if two shims start. The file `exit` contains the exit code as a shell reports it.
_SHIM = """set -C; echo $$ >"$0/pid" || exit 125; trap : TERM INT HUP QUIT USR1 USR2
"$@" >>"$0/1" 2>>"$0/2" </dev/null; code=$?; echo $code >"$0/exit.new"; mv "$0/exit.new" "$0/exit"
"""
_MARK = "ROLLCALL_EXECUTION="
_DEFAULT_GRACE = 5.0
_LACKS = ("checks", "secrets", "stop-on-agent-after")
_WATCH_EVERY = 0.2
# The maximum size of the files `pid` and `exit`, in bytes.
_MOST_NUMBER_BYTES = 32
_REFERENCE = re.compile(r"\$\$(?=[A-Za-z_{])|\$(?:\{([A-Za-z_][A-Za-z0-9_]*)\}|([A-Za-z_][A-Za-z0-9_]*))")


class ProcessExecutor:
    """Runs each execution as a process in its own session, which survives a restart of the agent.

    ProcessExecutor also serves as an example. It limits no resources, keeps all output, and refuses unsupported
    features (containers, checks, users named by jobs, secrets, stop_on_agent_after). ``directory`` holds one folder
    for each execution. Executions run as ``user``. Only ``may_be_own_user`` allows them to run as the agent's own
    user, because they can then read the node's private key. Raises ValueError for a user that is not allowed.
    """

    def __init__(
        self, directory: Path, *, user: str | None = None, may_be_own_user: bool = False, millicores: int = 0
    ) -> None:
        try:
            self._account = pwd.getpwnam(user) if user else None
        except KeyError:
            raise ValueError(f"there is no user {user}") from None
        if (self._account is None or self._account.pw_uid == os.geteuid()) and not may_be_own_user:
            raise ValueError(
                "executions would run as the agent's own user, and could read the node's key: "
                "name another user, or set may_be_own_user"
            )
        self._user = user or ""
        self._directory = directory
        self._millicores = millicores or (os.cpu_count() or 1) * 1000
        self._stops: dict[str, threading.Event] = {}
        directory.mkdir(mode=0o711, parents=True, exist_ok=True)

    def capacity(self) -> node_pb2.WorkCapacity:
        """Return the configured processors, by default all, no memory or disk, and what this executor lacks."""
        return node_pb2.WorkCapacity(
            executors=["process"], millicores=self._millicores, memory_bytes=0, disk_bytes=0, lacks=_LACKS
        )

    def start(self, execution: Execution, tell: Tell) -> None:
        """Start the execution as a process in its own session."""
        self._check(execution.spec)
        home = self._home(execution.id)
        home.mkdir(mode=0o700)
        if self._account is not None:
            os.chown(home, self._account.pw_uid, self._account.pw_gid)
        env = _environment(execution, home)
        words = [expand(word, env) for word in execution.spec.process.command]
        process = subprocess.Popen(
            ["/bin/sh", "-c", _SHIM, str(home), *words],
            cwd=home,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            user=self._account.pw_uid if self._account else None,
            group=self._account.pw_gid if self._account else None,
            extra_groups=[] if self._account else None,
        )
        self._watch(execution, process.pid, tell, process, 0.0)

    def adopt(self, execution: Execution, tell: Tell) -> bool:
        """Find the process by its process id and by the execution's id in its environment. If the execution was never
        started, prevent it from starting later.
        """
        home = self._home(execution.id)
        try:
            with open(home / "pid", "x", encoding="utf-8"):
                return False  # No shim has created the file, and none can do so now.
        except FileExistsError:
            pass
        except OSError:
            return False
        try:
            pid = _read_number(home / "pid")
        except (OSError, ValueError):
            return False
        if pid <= 1 or (not os.path.lexists(home / "exit") and not _is_execution(pid, execution.id)):
            return False
        try:
            age = age_of(pid)
        except (OSError, ValueError, IndexError):
            age = 0.0  # The process has ended.
        self._watch(execution, pid, tell, None, age)
        return True

    def stop(self, execution: Execution) -> None:
        """Send the signal from the spec, and kill the execution after its grace period."""
        event = self._stops.get(execution.id)
        if event is not None:
            event.set()

    def forget(self, execution_id: str) -> None:
        """Remove the execution's folder. Ignores errors, because what remains only takes up space."""
        self._stops.pop(execution_id, None)
        shutil.rmtree(self._home(execution_id), ignore_errors=True)

    def read_output(self, execution_id: str, stream: int, offset: int, tail: int, limit: int) -> OutputPiece:
        """Read from the execution's output file."""
        home = self._home(execution_id)
        has_ended = os.path.lexists(home / "exit")
        with _open_regular(home / str(stream)) as file:
            size = file.seek(0, os.SEEK_END)
            start = max(0, size - tail) if tail else min(offset, size)
            file.seek(start)
            data = file.read(limit)
        return OutputPiece(start, data, has_ended and start + len(data) >= size)

    def _home(self, execution_id: str) -> Path:
        return self._directory / file_name_of(execution_id)

    def _check(self, spec: work_pb2.ExecutionSpec) -> None:
        # Refuse a spec with settings that this executor does not support, instead of ignoring them.
        process = spec.process
        if not process.command:
            raise ValueError("this machine runs only processes")
        if spec.HasField("check") or spec.HasField("stop_on_agent_after") or process.secret_env:
            raise ValueError("this machine's executor does not support checks, secrets or stop_on_agent_after")
        if process.directory or process.user not in ("", self._user):
            raise ValueError("jobs cannot set a user or a directory on this machine")

    def _watch(
        self, execution: Execution, pid: int, tell: Tell, process: subprocess.Popen[bytes] | None, age: float
    ) -> None:
        stop = threading.Event()
        self._stops[execution.id] = stop

        def is_there() -> bool:
            return _is_execution(pid, execution.id) if process is None else process.poll() is None

        def watch() -> None:
            tell(Progress())
            limit = execution.spec.max_run_time.ToMilliseconds() / 1000
            end_at = time.monotonic() + limit - age if execution.spec.HasField("max_run_time") else None
            kill_at: float | None = None
            reason = work_pb2.END_REASON_EXITED
            while is_there():
                now = time.monotonic()
                if stop.is_set() and kill_at is None:
                    kill_at = _ask_to_end(execution, pid)
                elif end_at is not None and kill_at is None and now >= end_at:
                    end_at, reason = None, work_pb2.END_REASON_DEADLINE_EXCEEDED
                    kill_at = _ask_to_end(execution, pid)
                if kill_at is not None and now >= kill_at:
                    _signal(pid, signal.SIGKILL)
                if kill_at is None:
                    stop.wait(_WATCH_EVERY)
                else:
                    time.sleep(_WATCH_EVERY)
            _close_exit(self._home(execution.id) / "exit")
            tell(self._end_of(execution.id, reason))

        threading.Thread(target=watch, name=f"execution-{execution.id}", daemon=True).start()

    def _end_of(self, execution_id: str, reason: work_pb2.EndReason) -> Progress:
        try:
            code = _read_number(self._home(execution_id) / "exit")
        except (OSError, ValueError):
            return Progress(True, reason, signal="SIGKILL")
        if code > 128:
            return Progress(True, reason, signal=_signal_name(code - 128))
        return Progress(True, reason, exit_code=code)


def _open_regular(path: Path) -> BinaryIO:
    """Open a file in an execution's folder. Raises OSError if it is not a regular file.

    The execution's user owns the folder, so a link could lead anywhere and a pipe could block the agent.
    """
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(f"{path} is not a regular file")
    return open(handle, "rb")


def _read_number(path: Path) -> int:
    """Read a number written by a shim. Raises OSError or ValueError."""
    with _open_regular(path) as file:
        return int(file.read(_MOST_NUMBER_BYTES))


def _close_exit(path: Path) -> None:
    """Mark an execution as ended, in case its shim was killed along with it.

    Readers of the output wait for this mark.
    """
    try:
        with open(path, "x", encoding="utf-8") as file:
            file.write("137\n")
    except OSError:
        return  # The shim has written the file.


def _ask_to_end(execution: Execution, pid: int) -> float:
    policy = execution.spec.process.stop
    number = getattr(signal, policy.signal, signal.SIGTERM) if policy.signal.startswith("SIG") else signal.SIGTERM
    _signal(pid, int(number))
    grace = policy.grace.ToMilliseconds() / 1000 if policy.HasField("grace") else _DEFAULT_GRACE
    return time.monotonic() + grace


def _signal(pid: int, number: int) -> None:
    try:
        os.killpg(pid, number)
    except OSError:
        return  # The process has already ended.


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return str(number)


def _is_execution(pid: int, execution_id: str) -> bool:
    try:
        environ = Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return False
    return f"{_MARK}{execution_id}\0".encode() in environ


def age_of(pid: int) -> float:
    """Return the seconds since a process started.

    The time is measured from the machine's boot and not from file times, because the wall clock may have changed
    since.
    """
    # The second field is the program's name, which can contain any character. The 22nd is the start time of the
    # process.
    fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    return max(0.0, time.clock_gettime(time.CLOCK_BOOTTIME) - int(fields[19]) / os.sysconf("SC_CLK_TCK"))


def _environment(execution: Execution, home: Path) -> dict[str, str]:
    return {
        "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "HOME": str(home),
        **execution.spec.process.env,
        **{f"PORT_{label.upper()}": str(port) for label, port in execution.ports.items()},
        "ROLLCALL_EXECUTION": execution.id,
        "ROLLCALL_JOB": execution.spec.job,
        "ROLLCALL_NODE": execution.node_id,
        "ROLLCALL_INDEX": str(execution.index),
    }


def expand(word: str, env: Mapping[str, str]) -> str:
    """Replace $NAME and ${NAME} with values from the environment.

    Leaves unknown names for a shell to expand. ``$$`` becomes one dollar sign, and the name after it is not replaced.
    """

    def value_of(found: re.Match[str]) -> str:
        name = found[1] or found[2]
        return "$" if name is None else env.get(name, found[0])

    return _REFERENCE.sub(value_of, word)
