"""What follows the end of a stream or the failure to open one."""

from __future__ import annotations

import math
from dataclasses import dataclass

# After this many endpoints in a row that took no agents, an agent asks the registry where they are now.
_UNREACHABLE_LIMIT = 5
# Agents ask after a random part of this at the soonest: a fleet that lost all replicas must not ask at once.
_ASKS_SPREAD_MS = 15_000.0
# A registry that named no new endpoint is asked again no sooner than this.
_NOTHING_NEW_MS = 10_000.0
_DECISION_RETRY_MS = 120_000.0
_SUPERSEDED_RETRY_MS = 30_000.0
# The server may want the loser of a session back at once, which proves that two processes have the identity.
_SUPERSEDED_LEAST_MS = 1_000.0
BACKOFF_BASE_MS = 1_000.0
# What an agent adds to a time that it was given, at most this part of it.
_AGENT_SPREAD = 0.25
_SOON_MS = 600_000.0
_LONGEST_SOON_MS = 20_000.0
_LONGEST_MS = 120_000.0
_LEAST_PART = 0.625

# Refusals that only a person can lift.
_DECISIONS = frozenset(
    "NODE_REJECTED NODE_BANNED NODE_KEY_MISMATCH NODE_KEY_IN_USE NODE_ID_CONFUSABLE NODE_IS_ORCHESTRATOR "
    "JOIN_TOKEN_REQUIRED JOIN_TOKEN_INVALID JOIN_TOKEN_EXPIRED JOIN_TOKEN_REVOKED JOIN_TOKEN_USED_UP "
    "JOIN_TOKEN_NAME_MISMATCH JOIN_TOKEN_WRONG_CLUSTER SERVICE_ACCOUNT_TOKEN_INVALID SERVICE_ACCOUNT_NOT_ADMITTED "
    "INVALID_NODE_ID INVALID_LABEL INVALID_REQUEST INVALID_PUBLIC_KEY".split()
)
_REJECTIONS = frozenset({"NODE_REJECTED", "NODE_BANNED"})
_CAST_OUTS = _REJECTIONS | {"NODE_DELETED"}


@dataclass(frozen=True)
class End:
    """How a stream, or the attempt at one, came to its end."""

    kind: str
    """"unreachable" (nothing of ours answered), "silent" (no Ack for too long), "refused" or "left" (by this side)."""
    reason: str = ""
    """Name of an ErrorReason; empty where the server gave none."""
    message: str = ""
    retry_after_ms: float | None = None
    action: str = ""
    """"REGISTER", "STOP" or empty."""
    cast_out_by: str = ""
    """The history of the record that has cast the node out; empty where none has, or none is told."""

    @property
    def is_cast_out(self) -> bool:
        """Whether the node's part in the fleet has ended: what it runs is over."""
        return self.kind == "refused" and self.reason in _CAST_OUTS

    @property
    def is_decision(self) -> bool:
        """Whether it waits for a person."""
        return self.kind == "refused" and self.reason in _DECISIONS

    @property
    def is_of_endpoint(self) -> bool:
        """Whether this address has no replica that takes agents, while another one may have."""
        return self.kind == "unreachable" or (self.kind == "refused" and self.reason == "SERVER_SHUTTING_DOWN")

    @property
    def ends_round(self) -> bool:
        """Whether a registry that refuses so ends the round of endpoints, too, in which it was asked."""
        is_order = self.kind == "refused" and (self.action != "" or self.reason == "NODE_DELETED")
        return self.is_decision or is_order

    @property
    def is_rejection(self) -> bool:
        """Whether an operator has rejected or banned the node."""
        return self.kind == "refused" and self.reason in _REJECTIONS


@dataclass(frozen=True)
class NextStep:
    """What an agent does after an end."""

    is_idle: bool = False
    """Forget the registration, and do nothing until the agent is started again."""
    delay_ms: float = 0.0
    must_register: bool = False
    """A stream is of no use before a registration has succeeded."""


@dataclass(frozen=True)
class Attempts:
    """What happened before an end."""

    failures: int
    """Ends since a session was last steady, this one not counted."""
    rejected_for_ms: float
    backoff_max_ms: float
    random01: float

    @property
    def backoff(self) -> float:
        """A time to wait, in milliseconds."""
        return full_jitter(self.failures, BACKOFF_BASE_MS, self.backoff_max_ms, self.random01)


def asks_for_endpoints(unreachable: int, has_connected: bool, is_round_over: bool) -> bool:
    """Decide whether an agent asks the registry for endpoints, once an endpoint took no agents.

    What an agent knows that has not connected since it was started comes from a file and may be old: it asks after one
    round over its endpoints.
    """
    return unreachable >= _UNREACHABLE_LIMIT or (is_round_over and not has_connected)


def asks_after_loss(now_ms: float, random01: float) -> float:
    """From when on an agent may ask the registry for endpoints that has just lost its session."""
    return now_ms + math.floor(random01 * _ASKS_SPREAD_MS)


def asks_after_nothing_new(has_connected: bool, now_ms: float, random01: float) -> float:
    """From when on an agent may ask the registry again that has just named no new endpoint, or did not answer.

    One that has not connected since it was started asks after each round: its replicas may be about to start as well.
    """
    return _NOTHING_NEW_MS + asks_after_loss(now_ms, random01) if has_connected else now_ms


def decide_next_step(end: End, at: Attempts) -> NextStep:
    """Say what follows."""
    if end.kind == "unreachable":
        return NextStep(delay_ms=at.backoff)
    if end.kind == "refused":
        if end.action == "STOP" or end.reason == "NODE_DELETED":
            return NextStep(is_idle=True)
        is_unknown = end.action == "REGISTER" or end.reason == "NODE_NOT_REGISTERED"
        return NextStep(delay_ms=_delay_after_refusal(end, at), must_register=is_unknown)
    # The path is known to be dead: every moment of waiting counts towards UNHEALTHY.
    return NextStep()


def _delay_after_refusal(end: End, at: Attempts) -> float:
    given = end.retry_after_ms or 0.0
    if end.is_decision:
        if end.retry_after_ms is None:
            given = _DECISION_RETRY_MS
            if end.is_rejection:
                least, most = rejected_retry(at.rejected_for_ms)
                given = math.floor(least + at.random01 * (most - least) + 0.5)
        return spread_retry(given, at.random01)
    if end.reason == "SESSION_SUPERSEDED":
        # Another process has this node's identity: two that fight over it must not do so in a tight loop.
        if end.retry_after_ms is None:
            given = _SUPERSEDED_RETRY_MS
        return spread_retry(max(_SUPERSEDED_LEAST_MS, given), at.random01)
    return given + at.backoff


def full_jitter(attempt: int, base_ms: float, max_ms: float, random01: float) -> float:
    """A time from nothing to a limit that doubles with each attempt."""
    return math.floor(random01 * min(max_ms, base_ms * 2.0 ** min(attempt, 1_000)))


def rejected_retry(since_ms: float) -> tuple[float, float]:
    """Between which times a rejected node asks again: soon at first, since a mistake is noticed at once."""
    grown = max(0.0, since_ms) / _SOON_MS * _LONGEST_SOON_MS
    with_spread = min(_LONGEST_MS, max(_LONGEST_SOON_MS, grown))
    most = math.floor(with_spread / (1 + _AGENT_SPREAD))
    return math.floor(most * _LEAST_PART), most


def spread_retry(least_ms: float, random01: float) -> float:
    """Add jitter to a given time, and take nothing from it."""
    return least_ms + math.floor(random01 * least_ms * _AGENT_SPREAD)
