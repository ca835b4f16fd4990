"""Decides what should run on this node according to the control plane, and which actions that requires. Does no I/O."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from ..health.v1 import health_pb2
from ..work.v1 import work_pb2

# The maximum number of references that a node keeps, regardless of how many it receives.
_MOST_REFERENCES = 5_000
_DIGEST_DIGITS = 64
_LOST = "the execution is lost: it was started before, but its machine no longer knows it"
_NO_SPEC = "the store has no such spec"

References = Mapping[str, work_pb2.ExecutionReference]


@dataclass(frozen=True)
class Kept:
    """An execution on this machine."""

    observation: work_pb2.ExecutionObservation
    log_id: str
    """The store history that knows the execution."""


@dataclass(frozen=True)
class Action:
    """A step towards the desired state: "start", "stop", "refuse", "forget" or "bind"."""

    kind: str
    reference: work_pb2.ExecutionReference = field(default_factory=work_pb2.ExecutionReference)
    spec: bytes = b""
    message: str = ""
    is_lost: bool = False
    """For "refuse": whether the execution was started here before."""
    ids: tuple[str, ...] = ()


@dataclass(frozen=True)
class DesiredWork:
    """What should run on this node, according to the control plane."""

    log_id: str = ""
    """The store history that sent the list; empty before the first list."""
    generation: int = 0
    references: References = field(default_factory=dict)
    partial: References = field(default_factory=dict)
    """The parts of a complete list received so far."""

    def apply(self, frame: health_pb2.Executions) -> DesiredWork:
        """Apply a frame. Ignores an older generation of the same history."""
        is_same_log = frame.log_id == self.log_id
        if is_same_log and frame.generation < self.generation:
            return self
        if not frame.whole:
            # A change is meaningless without the complete list of the same history.
            if not is_same_log:
                return self
            generation = self.generation if frame.more else frame.generation
            return replace(self, references=_bounded(self.references, frame.references), generation=generation)
        partial = _bounded(self.partial, frame.references)
        if frame.more:
            return replace(self, partial=partial)
        return DesiredWork(frame.log_id, frame.generation, partial)

    def cast_out(self, kept: Mapping[str, Kept], by: str) -> DesiredWork:
        """Return the desired work after a store history has rejected, banned or deleted the node.

        All executions of that history stop, and nothing new starts. Executions of other histories continue.
        """
        stopped = {
            key: work_pb2.ExecutionReference(id=key, desired=work_pb2.DESIRED_STATE_STOP)
            for key, one in kept.items()
            if one.log_id == by
        }
        return DesiredWork(by, self.generation if by == self.log_id else 0, stopped)

    def without_forgotten(self, kept: Mapping[str, Kept]) -> DesiredWork:
        """Drop references that ask to forget an execution that is already gone."""
        left = {
            key: one
            for key, one in self.references.items()
            if one.desired != work_pb2.DESIRED_STATE_FORGET or key in kept
        }
        return replace(self, references=left)

    @property
    def useful_specs(self) -> frozenset[str]:
        """The digests of specs that are still needed."""
        return frozenset(one.spec_digest.hex() for one in self.references.values())


def plan_work(
    desired: DesiredWork, kept: Mapping[str, Kept], met: Iterable[str], specs: Mapping[str, bytes | None]
) -> tuple[list[Action], list[str]]:
    """Decide which actions to take and which specs are missing. Executions that no list names continue.

    A list stops only executions of the same store history, so after a restore an execution must first be bound to
    the restored history. An execution that the machine (``met``) or the store remembers, but that no longer
    exists, was lost and never starts a second time. ``specs`` has None for a spec that the store no longer has.
    """
    actions: list[Action] = []
    forget: list[str] = []
    bind: list[str] = []
    wanted: dict[str, None] = {}
    had = set(met)
    for key, reference in desired.references.items():
        one = kept.get(key)
        is_ended = one is not None and one.observation.state == work_pb2.OBSERVED_STATE_ENDED
        state = reference.desired
        if one is None and state != work_pb2.DESIRED_STATE_FORGET and (reference.reported or key in had):
            actions.append(Action("refuse", reference, message=_LOST, is_lost=True))
        elif state == work_pb2.DESIRED_STATE_RUN:
            digest = reference.spec_digest.hex()
            if one is not None:
                if one.log_id != desired.log_id:
                    bind.append(key)
            elif digest not in specs:
                wanted[digest] = None
            else:
                spec = specs[digest]
                is_gone = spec is None
                actions.append(
                    Action("refuse", reference, message=_NO_SPEC)
                    if is_gone
                    else Action("start", reference, spec or b"")
                )
        elif state == work_pb2.DESIRED_STATE_STOP:
            if one is None or (not is_ended and one.log_id == desired.log_id):
                actions.append(Action("stop", reference))
        elif state == work_pb2.DESIRED_STATE_FORGET and one is not None and is_ended:
            if one.log_id == desired.log_id:
                forget.append(key)
    if forget:
        actions.append(Action("forget", ids=tuple(forget)))
    if bind:
        actions.append(Action("bind", ids=tuple(bind)))
    return actions, [digest for digest in wanted if len(digest) == _DIGEST_DIGITS]


def _bounded(known: References, named: Iterable[work_pb2.ExecutionReference]) -> References:
    together = {**known, **{one.id: one for one in named}}
    return dict(list(together.items())[-_MOST_REFERENCES:])
