"""Decides what to do after the end of a stream or the failure to open one."""

from __future__ import annotations

import math
from dataclasses import dataclass

# The number of consecutive endpoints that accept no agents before an agent asks the registry for the current endpoints.
_UNREACHABLE_LIMIT = 5
# The longest time that an agent waits before it asks the registry, after it lost its session. Each agent waits a random
# part of this time, so that a fleet that lost all replicas does not ask all at the same moment.
_ASKS_SPREAD_MS = 15_000.0
# The minimum time between two requests to a registry that returned no new endpoint.
_NOTHING_NEW_MS = 10_000.0
_DECISION_RETRY_MS = 120_000.0
_SUPERSEDED_RETRY_MS = 30_000.0
# The minimum delay after SESSION_SUPERSEDED. The server can ask the process that lost the session to reconnect
# immediately, to prove that two processes have the node's identity.
_SUPERSEDED_LEAST_MS = 1_000.0
BACKOFF_BASE_MS = 1_000.0
# The maximum jitter that an agent adds to a given delay, as a fraction of the delay.
_AGENT_SPREAD = 0.25
_SOON_MS = 600_000.0
_LONGEST_SOON_MS = 20_000.0
_LONGEST_MS = 120_000.0
_LEAST_PART = 0.625

# Refusals that only a person can resolve.
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
    """How a stream ended, or how the attempt to open one failed."""

    kind: str
    """"unreachable" (no Rollcall server responded), "silent" (no Ack arrived for too long), "refused" (by the server)
    or "left" (by the agent).
    """
    reason: str = ""
    """The name of an ErrorReason; empty if the server gave none."""
    message: str = ""
    retry_after_ms: float | None = None
    action: str = ""
    """"REGISTER", "STOP" or empty."""
    cast_out_by: str = ""
    """The store history that excluded the node.

    It is empty if the node is not excluded or if the server did not name the history.
    """

    @property
    def is_cast_out(self) -> bool:
        """Whether the node was excluded from the fleet, which ends its executions."""
        return self.kind == "refused" and self.reason in _CAST_OUTS

    @property
    def is_decision(self) -> bool:
        """Whether only a person can resolve the end."""
        return self.kind == "refused" and self.reason in _DECISIONS

    @property
    def is_of_endpoint(self) -> bool:
        """Whether the end concerns only this address, so that a replica at another address may accept agents."""
        return self.kind == "unreachable" or (self.kind == "refused" and self.reason == "SERVER_SHUTTING_DOWN")

    @property
    def ends_round(self) -> bool:
        """Whether this refusal by the registry also ends the current round of endpoints."""
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
    """Whether the agent forgets the registration and does nothing until it is restarted."""
    delay_ms: float = 0.0
    must_register: bool = False
    """Whether the agent registers before it opens a stream."""


@dataclass(frozen=True)
class Attempts:
    """What happened before the current end."""

    failures: int
    """The number of earlier ends since the last steady session."""
    rejected_for_ms: float
    backoff_max_ms: float
    random01: float

    @property
    def backoff(self) -> float:
        """Return a random delay in milliseconds, which grows with each failure."""
        return full_jitter(self.failures, BACKOFF_BASE_MS, self.backoff_max_ms, self.random01)


def asks_for_endpoints(unreachable: int, has_connected: bool, is_round_over: bool) -> bool:
    """Decide whether an agent asks the registry for endpoints after an endpoint accepted no agents.

    An agent that has not connected since its start asks after one round, because its endpoints come from a file and
    may be outdated.
    """
    return unreachable >= _UNREACHABLE_LIMIT or (is_round_over and not has_connected)


def asks_after_loss(now_ms: float, random01: float) -> float:
    """When an agent that has just lost its session can first ask the registry for endpoints."""
    return now_ms + math.floor(random01 * _ASKS_SPREAD_MS)


def asks_after_nothing_new(has_connected: bool, now_ms: float, random01: float) -> float:
    """When an agent can ask the registry again after the registry returned no new endpoint or did not respond.

    An agent that has not connected since its start asks after each round, because the replicas may also be starting.
    """
    return _NOTHING_NEW_MS + asks_after_loss(now_ms, random01) if has_connected else now_ms


def decide_next_step(end: End, at: Attempts) -> NextStep:
    """Decide what to do next."""
    if end.kind == "unreachable":
        return NextStep(delay_ms=at.backoff)
    if end.kind == "refused":
        if end.action == "STOP" or end.reason == "NODE_DELETED":
            return NextStep(is_idle=True)
        is_unknown = end.action == "REGISTER" or end.reason == "NODE_NOT_REGISTERED"
        return NextStep(delay_ms=_delay_after_refusal(end, at), must_register=is_unknown)
    # The connection is dead. Reconnect immediately, because any delay counts towards UNHEALTHY.
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
        # Another process has this node's identity. Wait, because otherwise the two processes would take the session
        # from each other in a tight loop.
        if end.retry_after_ms is None:
            given = _SUPERSEDED_RETRY_MS
        return spread_retry(max(_SUPERSEDED_LEAST_MS, given), at.random01)
    return given + at.backoff


def full_jitter(attempt: int, base_ms: float, max_ms: float, random01: float) -> float:
    """Return a random time between 0 and a limit that doubles with each attempt, up to ``max_ms``."""
    return math.floor(random01 * min(max_ms, base_ms * 2.0 ** min(attempt, 1_000)))


def rejected_retry(since_ms: float) -> tuple[float, float]:
    """Return the bounds of a rejected node's retry delay. The delay is short at first, because an operator who rejected
    the wrong node soon notices the mistake.
    """
    grown = max(0.0, since_ms) / _SOON_MS * _LONGEST_SOON_MS
    with_spread = min(_LONGEST_MS, max(_LONGEST_SOON_MS, grown))
    most = math.floor(with_spread / (1 + _AGENT_SPREAD))
    return math.floor(most * _LEAST_PART), most


def spread_retry(least_ms: float, random01: float) -> float:
    """Add jitter to a given delay. Never shortens the delay."""
    return least_ms + math.floor(random01 * least_ms * _AGENT_SPREAD)
