"""When a call that failed is made again. Pure: time and random numbers are passed in."""

from __future__ import annotations

from dataclasses import dataclass

import grpc

from .errors import RollcallError
from .reasons import Reason


@dataclass(frozen=True)
class RetryPolicy:
    """How often, and how long after a failure, a call is made again."""

    attempts: int = 5
    """Calls in total, the first included. 1 turns retries off."""
    first_wait: float = 0.2
    """Seconds before the second call; each further wait is twice the one before."""
    longest_wait: float = 5.0
    """Seconds that no wait exceeds, unless the server asks for more."""


# ABORTED is not among them: it says that an etag is of another version.
_PASSING = frozenset({grpc.StatusCode.UNAVAILABLE})


def wait_before_retry(
    policy: RetryPolicy, error: RollcallError, attempt: int, is_repeatable: bool, remaining: float, random: float
) -> float | None:
    """Seconds to wait before the call is made again; None where it is not.

    ``attempt`` counts the calls so far. ``is_repeatable`` says that the same call twice has one effect: it only reads,
    or carries a request id. ``remaining`` is what is left of the call's deadline, and ``random`` is in [0, 1).
    """
    if attempt >= policy.attempts:
        return None
    has_no_room = error.code is grpc.StatusCode.RESOURCE_EXHAUSTED and error.retry_after is not None
    # A call that was refused for lack of room, or for its revision, had no effect. Any other may have had one.
    is_refused = has_no_room or error.reason == Reason.MIN_REVISION_AHEAD
    if not (is_refused or (is_repeatable and error.code in _PASSING)):
        return None
    backoff = min(policy.longest_wait, policy.first_wait * 2 ** (attempt - 1)) * (0.5 + random / 2)
    wait = max(backoff, error.retry_after or 0.0)
    return wait if wait < remaining else None


SHORTEST_ATTEMPT = 1.0
"""Seconds that an attempt is given at least, however short its call may take."""


def attempt_limit(policy: RetryPolicy, timeout: float, attempt: int, is_repeatable: bool) -> float | None:
    """Seconds that an attempt may take, so that a first one over a dead path leaves time for another.

    None for all the time that its call has left. ``timeout`` is what the call may take in total.
    """
    # A server that is merely slow gets the rest of the time from the second attempt on.
    if not is_repeatable or attempt > 1 or policy.attempts <= 1:
        return None
    return max(timeout / 3, SHORTEST_ATTEMPT)


_BREAKS = _PASSING | {
    grpc.StatusCode.ABORTED,
    grpc.StatusCode.CANCELLED,
    grpc.StatusCode.DEADLINE_EXCEEDED,
    grpc.StatusCode.RESOURCE_EXHAUSTED,
    grpc.StatusCode.UNKNOWN,
    grpc.StatusCode.INTERNAL,
}
_FIRST_BREAK_WAIT = 0.2
_LONGEST_BREAK_WAIT = 5.0


def wait_before_resume(error: RollcallError, breaks: int, random: float) -> float | None:
    """Seconds to wait before a watch that broke is opened again; None where its error is final.

    ``breaks`` counts the breaks since the last message.
    """
    # A token that ends, ends the streams that were opened with it; its file may have the next one.
    is_renewed = breaks == 1 and error.reason in (Reason.TOKEN_EXPIRED, Reason.TOKEN_REVOKED)
    # The client has forgotten the revision by now.
    is_forgotten = error.reason == Reason.MIN_REVISION_AHEAD
    if error.code not in _BREAKS and not is_renewed and not is_forgotten:
        return None
    longest = min(_LONGEST_BREAK_WAIT, _FIRST_BREAK_WAIT * 2.0 ** min(breaks - 1, 10))
    backoff: float = longest * (0.5 + random / 2)
    return max(backoff, error.retry_after or 0.0)
