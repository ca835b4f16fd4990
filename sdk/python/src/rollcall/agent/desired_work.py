"""What the control plane wants of this node, and what has to be done for it. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from ..health.v1 import health_pb2
from ..work.v1 import work_pb2

# A node keeps no more than this of what it is told, whatever it is told.
_MOST_REFERENCES = 5_000
_DIGEST_DIGITS = 64
_LOST = "its machine has lost it: it was started before, and nothing is known of it there"
_NO_SPEC = "the record has no such spec"

References = Mapping[str, work_pb2.ExecutionReference]


@dataclass(frozen=True)
class Kept:
    """An execution that the machine has."""

    observation: work_pb2.ExecutionObservation
    log_id: str
    """The history of the record that knows it."""


@dataclass(frozen=True)
class Action:
    """What has to be done: "start", "stop", "refuse", "forget" or "bind"."""

    kind: str
    reference: work_pb2.ExecutionReference = field(default_factory=work_pb2.ExecutionReference)
    spec: bytes = b""
    message: str = ""
    is_lost: bool = False
    """It was started here before."""
    ids: tuple[str, ...] = ()


@dataclass(frozen=True)
class DesiredWork:
    """What the control plane wants."""

    log_id: str = ""
    """The history of the record that said so; empty before the first list."""
    generation: int = 0
    references: References = field(default_factory=dict)
    partial: References = field(default_factory=dict)
    """The parts of a whole list that have come so far."""

    def apply(self, frame: health_pb2.Executions) -> DesiredWork:
        """Take over a frame. An older generation of the same history changes nothing."""
        is_same_log = frame.log_id == self.log_id
        if is_same_log and frame.generation < self.generation:
            return self
        if not frame.whole:
            # Of a history whose whole list has not come, a change says too little.
            if not is_same_log:
                return self
            generation = self.generation if frame.more else frame.generation
            return replace(self, references=_bounded(self.references, frame.references), generation=generation)
        partial = _bounded(self.partial, frame.references)
        if frame.more:
            return replace(self, partial=partial)
        return DesiredWork(frame.log_id, frame.generation, partial)

    def cast_out(self, kept: Mapping[str, Kept], by: str) -> DesiredWork:
        """The node was rejected, banned or deleted by a history: all that runs by it is to stop.

        Nothing more is started. What another history knows goes on.
        """
        stopped = {
            key: work_pb2.ExecutionReference(id=key, desired=work_pb2.DESIRED_STATE_STOP)
            for key, one in kept.items()
            if one.log_id == by
        }
        return DesiredWork(by, self.generation if by == self.log_id else 0, stopped)

    def without_forgotten(self, kept: Mapping[str, Kept]) -> DesiredWork:
        """Let go of executions that are to be forgotten, and have been."""
        left = {
            key: one
            for key, one in self.references.items()
            if one.desired != work_pb2.DESIRED_STATE_FORGET or key in kept
        }
        return replace(self, references=left)

    @property
    def useful_specs(self) -> frozenset[str]:
        """The digests of specs that are still of use."""
        return frozenset(one.spec_digest.hex() for one in self.references.values())


def plan_work(
    desired: DesiredWork, kept: Mapping[str, Kept], met: Iterable[str], specs: Mapping[str, bytes | None]
) -> tuple[list[Action], list[str]]:
    """Decide what to do, and which specs are missing. What no list names goes on.

    A history that was restored stops nothing that runs by another one until it has heard of that. What was here
    before, as the machine (``met``) or the record remembers, and is not here now, was lost: it is never started a
    second time. ``specs`` has None for one that the record has no more.
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
