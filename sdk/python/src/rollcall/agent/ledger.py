"""The machine's durable list of executions. An execution is written to disk before anything about it is reported."""

from __future__ import annotations

import base64
import hashlib
import json
import logging
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from google.protobuf import json_format
from google.protobuf.message import DecodeError

from ..health.v1 import health_pb2
from ..work.v1 import work_pb2
from .desired_work import Action, DesiredWork, Kept, plan_work
from .executor import Execution, Executor, Progress, Tell
from .next_step import End
from .proof import executions_digest
from .state_dir import write_atomically

# The change number of an execution that ends without ever starting.
_CHANGE_OF_REFUSED = 2
# The time in seconds between checks for executions that should be running but are not.
_PLAN_EVERY = 15.0
_ENDED = work_pb2.OBSERVED_STATE_ENDED


@dataclass
class _Entry:
    execution: Execution
    reference: work_pb2.ExecutionReference
    spec: bytes
    is_stopping: bool = False


class Ledger:
    """Keeps the executions of this machine and carries out planned actions. ``tell`` receives changed executions and
    missing specs.
    """

    def __init__(
        self,
        directory: Path,
        node_id: str,
        executor: Executor | None,
        log: logging.LoggerAdapter[logging.Logger],
        post: Callable[[Callable[[], None]], None],
        tell: Callable[[tuple[str, ...], tuple[str, ...]], None],
        wall: Callable[[], float],
    ) -> None:
        directory.mkdir(mode=0o700, exist_ok=True)
        self._directory = directory
        self._node_id = node_id
        self._executor = executor
        self._log = log
        self._post = post
        self._tell = tell
        self._wall = wall
        self._kept: dict[str, Kept] = {}
        self._entries: dict[str, _Entry] = {}
        self._met: set[str] = set()
        self._specs: dict[str, bytes | None] = {}
        self._desired = DesiredWork()
        self._wanted: tuple[str, ...] = ()
        self._session_log_id = ""
        self._to_bind: dict[str, None] = {}
        self._planned_at = 0.0
        for file in directory.glob("*.json"):
            try:
                self._read(file)
            except (OSError, ValueError, KeyError, json_format.ParseError, DecodeError) as error:
                # Treat the execution as lost, because the store knows that it was reported.
                log.error("an execution's file cannot be read: %s: %s", file, error)

    def recover(self) -> None:
        """Adopt the executions that an earlier run of the agent left running."""
        for key, entry in list(self._entries.items()):
            if self._kept[key].observation.state == _ENDED:
                continue
            message = self._adopt(key, entry)
            if message:
                self._on_progress(key, Progress(True, work_pb2.END_REASON_GONE, message=message))
            elif entry.is_stopping:
                self._ask_to_stop(entry)

    @property
    def is_running(self) -> bool:
        """Whether any execution has not ended."""
        return any(one.observation.state != _ENDED for one in self._kept.values())

    def observations(self, ids: Iterable[str] | None) -> list[work_pb2.ExecutionObservation]:
        """The observations of these executions, or of all executions for None. Unknown ids are skipped."""
        named = sorted(self._kept) if ids is None else ids
        return [self._kept[key].observation for key in named if key in self._kept]

    def digest(self) -> int:
        """The digest of all executions."""
        return executions_digest(self.observations(None))

    def opened(self) -> None:
        """Handle a new session. Discard partial lists of an earlier session."""
        self._desired = DesiredWork(self._desired.log_id, self._desired.generation, self._desired.references)
        self._session_log_id = ""
        self._to_bind = {}

    def heed(self, frame: health_pb2.Executions) -> None:
        """Store the list of executions that should run, and plan."""
        self._desired = self._desired.apply(frame)
        self._session_log_id = frame.log_id
        self._bind_reported()
        self._plan()

    def ended(self, end: End, told_by: str) -> None:
        """Handle the end of a stream or a registration.

        If the node was rejected, banned or deleted, stop the executions of the store history that excluded the node.
        If the server does not name that history, it is ``told_by``: the history of the Executions that the stream
        received.
        """
        by = end.cast_out_by or told_by
        if not end.is_cast_out or not by:
            return
        self._desired = self._desired.cast_out(self._kept, by)
        count = len(self._desired.references)
        self._log.warning("node was rejected, banned or deleted, stopping its executions: %d", count)
        self._plan()

    def take_spec(self, frame: health_pb2.SpecFrame) -> None:
        """Store a requested spec, and plan."""
        digest = frame.digest.hex()
        if digest not in self._desired.useful_specs:
            return
        if frame.spec and hashlib.sha256(frame.spec).digest() != frame.digest:
            self._log.error("spec does not have the requested digest, ignoring it: %s", digest)
            return
        self._specs[digest] = frame.spec or None
        self._plan()

    def reported(self, ids: Iterable[str]) -> None:
        """Record that the store has received the reports about these executions."""
        self._to_bind.update(dict.fromkeys(ids))
        self._bind_reported()

    def seen(self) -> None:
        """Handle a response from the control plane: retry what failed."""
        if time.monotonic() - self._planned_at >= _PLAN_EVERY:
            self._plan()

    def _read(self, file: Path) -> None:
        found = json.loads(file.read_text(encoding="utf-8"))
        reference = json_format.ParseDict(found["reference"], work_pb2.ExecutionReference())
        observation = json_format.ParseDict(found["observation"], work_pb2.ExecutionObservation())
        spec = base64.b64decode(found["spec"])
        execution = self._execution_of(reference, work_pb2.ExecutionSpec.FromString(spec))
        key = observation.id
        self._entries[key] = _Entry(execution, reference, spec, found["isStopping"])
        self._kept[key] = Kept(observation, found["logId"])
        self._met.add(key)

    def _execution_of(self, reference: work_pb2.ExecutionReference, spec: work_pb2.ExecutionSpec) -> Execution:
        gpus = tuple(reference.gpu_uuids)
        return Execution(reference.id, self._node_id, reference.index, dict(reference.ports), gpus, spec)

    def _bind_reported(self) -> None:
        # Bind the reported executions to the store history of this session, because the store now knows them.
        if self._session_log_id:
            self._bind(self._to_bind, self._session_log_id)
            self._to_bind = {}

    def _bind(self, ids: Iterable[str], log_id: str) -> None:
        for key in ids:
            one = self._kept.get(key)
            if one is not None and one.log_id != log_id:
                self._keep(key, Kept(one.observation, log_id))

    def _plan(self) -> None:
        self._planned_at = time.monotonic()
        self._desired = self._desired.without_forgotten(self._kept)
        self._met = {key for key in self._met if key in self._kept or key in self._desired.references}
        useful = self._desired.useful_specs
        self._specs = {digest: spec for digest, spec in self._specs.items() if digest in useful}
        actions, wanted = plan_work(self._desired, self._kept, self._met, self._specs)
        if wanted or self._wanted:
            self._wanted = tuple(wanted)
            self._tell((), self._wanted)
        for action in actions:
            self._carry_out(action)

    def _carry_out(self, action: Action) -> None:
        if action.kind == "start":
            self._start(action.reference, action.spec)
        elif action.kind == "stop":
            self._stop(action.reference)
        elif action.kind == "refuse":
            reason = work_pb2.END_REASON_GONE if action.is_lost else work_pb2.END_REASON_START_FAILED
            self._end(action.reference, reason, action.message)
        elif action.kind == "forget":
            self._forget(action.ids)
        else:
            self._bind(action.ids, self._desired.log_id)

    def _start(self, reference: work_pb2.ExecutionReference, data: bytes) -> None:
        try:
            spec = work_pb2.ExecutionSpec.FromString(data)
        except DecodeError:
            spec = None
        if spec is None or self._executor is None:
            self._end(reference, work_pb2.END_REASON_START_FAILED, "this machine runs no work")
            return
        key = reference.id
        entry = _Entry(self._execution_of(reference, spec), reference, data)
        observation = _observation_of(reference, spec.job)
        observation.state, observation.change = work_pb2.OBSERVED_STATE_STARTING, 1
        # Write to disk before starting, so that an execution that may have been started is never started a second
        # time.
        if not self._add(key, entry, observation):
            return
        try:
            self._executor.start(entry.execution, self._listener(key))
        except Exception as error:
            # Catch any exception. If the failure is not reported, the control plane waits for the execution.
            self._log.warning("an execution cannot be started: %s", key, exc_info=error)
            message = str(error) or type(error).__name__
            self._on_progress(key, Progress(True, work_pb2.END_REASON_START_FAILED, message=message))

    def _stop(self, reference: work_pb2.ExecutionReference) -> None:
        entry = self._entries.get(reference.id)
        if entry is None:
            self._end(reference, work_pb2.END_REASON_STOPPED, "it was not on this machine")
        elif not entry.is_stopping and self._executor is not None:
            entry.is_stopping = True
            self._keep(reference.id, self._kept[reference.id])
            self._ask_to_stop(entry)

    def _adopt(self, key: str, entry: _Entry) -> str:
        """Adopt one execution. Return why that is impossible, or an empty string."""
        try:
            if self._executor is not None and self._executor.adopt(entry.execution, self._listener(key)):
                return ""
        except Exception as error:
            # Ignore the error. Continue with the other executions, and keep the session.
            self._log.error("an execution cannot be adopted: %s", key, exc_info=error)
            return f"it cannot be adopted: {str(error) or type(error).__name__}"
        return "it was gone when the agent restarted"

    def _ask_to_stop(self, entry: _Entry) -> None:
        try:
            if self._executor is not None:
                self._executor.stop(entry.execution)
        except Exception as error:
            # The execution is still reported as running, because only the executor reports an end.
            self._log.error("an execution cannot be stopped: %s", entry.execution.id, exc_info=error)

    def _end(self, reference: work_pb2.ExecutionReference, reason: work_pb2.EndReason, message: str) -> None:
        # Record that an execution ended without running here.
        observation = _observation_of(reference, "")
        observation.state, observation.change = _ENDED, _CHANGE_OF_REFUSED
        observation.end_reason, observation.message = reason, message[:512]
        observation.end_time.FromMilliseconds(int(self._wall() * 1000))
        self._add(
            reference.id, _Entry(self._execution_of(reference, work_pb2.ExecutionSpec()), reference, b""), observation
        )

    def _add(self, key: str, entry: _Entry, observation: work_pb2.ExecutionObservation) -> bool:
        self._entries[key] = entry
        if not self._keep(key, Kept(observation, self._desired.log_id)):
            self._entries.pop(key)
            self._kept.pop(key, None)
            return False
        self._met.add(key)
        self._tell((key,), self._wanted)
        return True

    def _forget(self, ids: tuple[str, ...]) -> None:
        for key in ids:
            try:
                self._path_of(key).unlink(missing_ok=True)
            except OSError as error:
                self._log.warning("an execution's file cannot be removed: %s", error)
                continue
            try:
                if self._executor is not None:
                    self._executor.forget(key)
            except Exception as error:
                # Ignore the error. The remains only take up space.
                self._log.warning("the remains of an execution cannot be removed: %s", key, exc_info=error)
            self._kept.pop(key, None)
            self._entries.pop(key, None)
            self._met.discard(key)
        self._desired = self._desired.without_forgotten(self._kept)
        self._tell(ids, self._wanted)

    def _listener(self, key: str) -> Tell:
        return lambda progress: self._post(lambda: self._on_progress(key, progress))

    def _on_progress(self, key: str, progress: Progress) -> None:
        one = self._kept.get(key)
        if one is None or one.observation.state == _ENDED:
            return
        after = work_pb2.ExecutionObservation()
        after.CopyFrom(one.observation)
        after.change += 1
        now_ms = int(self._wall() * 1000)
        if not after.HasField("start_time") and progress.reason != work_pb2.END_REASON_START_FAILED:
            after.start_time.FromMilliseconds(now_ms)
        after.state = work_pb2.OBSERVED_STATE_READY
        after.message = progress.message[:512]
        if progress.has_ended:
            after.state = _ENDED
            after.end_time.FromMilliseconds(now_ms)
            is_stopping = self._entries[key].is_stopping
            after.end_reason = work_pb2.END_REASON_STOPPED if is_stopping else progress.reason
            after.signal = progress.signal
            if progress.exit_code is not None:
                after.exit_code = progress.exit_code
        # Report the change even if the disk write fails, because otherwise the control plane would wait for the
        # execution to end.
        self._keep(key, Kept(after, one.log_id))
        self._tell((key,), self._wanted)

    def _keep(self, key: str, kept: Kept) -> bool:
        entry = self._entries[key]
        self._kept[key] = kept
        content = {
            "logId": kept.log_id,
            "isStopping": entry.is_stopping,
            "reference": json_format.MessageToDict(entry.reference),
            "spec": base64.b64encode(entry.spec).decode(),
            "observation": json_format.MessageToDict(kept.observation),
        }
        try:
            write_atomically(self._path_of(key), json.dumps(content).encode())
        except OSError as error:
            self._log.error("an execution's file cannot be written: %s: %s", key, error)
            return False
        return True

    def _path_of(self, key: str) -> Path:
        return self._directory / f"{file_name_of(key)}.json"


def file_name_of(execution_id: str) -> str:
    """Return a safe file name for any id."""
    return hashlib.sha256(execution_id.encode()).hexdigest()[:32]


def _observation_of(reference: work_pb2.ExecutionReference, job: str) -> work_pb2.ExecutionObservation:
    return work_pb2.ExecutionObservation(
        id=reference.id,
        job=job,
        spec_digest=reference.spec_digest,
        ports=reference.ports,
        gpu_uuids=reference.gpu_uuids,
    )
