"""Decides when a failed call is retried. Does no I/O, because time and random numbers are parameters."""

from __future__ import annotations

from dataclasses import dataclass

import grpc

from .errors import RollcallError
from .reasons import Reason


@dataclass(frozen=True)
class RetryPolicy:
    """How many times a call is retried, and after what delays."""

    attempts: int = 5
    """The maximum number of calls, including the first. 1 disables retries."""
    first_wait: float = 0.2
    """The delay before the second call in seconds. Each further delay is twice as long."""
    longest_wait: float = 5.0
    """The maximum delay in seconds, unless the server asks for more."""


# ABORTED means that an etag is outdated, so the call is not retried.
_PASSING = frozenset({grpc.StatusCode.UNAVAILABLE})


def wait_before_retry(
    policy: RetryPolicy, error: RollcallError, attempt: int, is_repeatable: bool, remaining: float, random: float
) -> float | None:
    """Seconds to wait before the call is retried; None if it is not retried.

    ``attempt`` is the number of calls so far. ``is_repeatable`` says whether sending the call twice has the same
    effect as sending it once, because the call only reads or carries a request id. ``remaining`` is the time left for
    the call, and ``random`` is in [0, 1).
    """
    if attempt >= policy.attempts:
        return None
    has_no_room = error.code is grpc.StatusCode.RESOURCE_EXHAUSTED and error.retry_after is not None
    # A call refused for lack of capacity or for its revision had no effect. Any other failed call may have had an
    # effect.
    is_refused = has_no_room or error.reason == Reason.MIN_REVISION_AHEAD
    if not (is_refused or (is_repeatable and error.code in _PASSING)):
        return None
    backoff = min(policy.longest_wait, policy.first_wait * 2 ** (attempt - 1)) * (0.5 + random / 2)
    wait = max(backoff, error.retry_after or 0.0)
    return wait if wait < remaining else None


SHORTEST_ATTEMPT = 1.0
"""The minimum time limit of an attempt in seconds, even if the timeout of its call is shorter."""


def attempt_limit(policy: RetryPolicy, timeout: float, attempt: int, is_repeatable: bool) -> float | None:
    """The time limit of an attempt in seconds; None means all of the remaining time.

    The first attempt is limited, so that a second attempt has time left if the path is dead. ``timeout`` is the limit
    of the whole call.
    """
    # From the second attempt on, the server gets all of the remaining time, because it may just be slow.
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
    """Seconds to wait before a broken watch is reopened; None if its error is final.

    ``breaks`` is the number of breaks since the last message.
    """
    # When a token expires, the server ends the streams opened with it. The token file may already contain the next
    # token.
    is_renewed = breaks == 1 and error.reason in (Reason.TOKEN_EXPIRED, Reason.TOKEN_REVOKED)
    # With MIN_REVISION_AHEAD, the client has already forgotten that revision, so the watch can be reopened.
    is_forgotten = error.reason == Reason.MIN_REVISION_AHEAD
    if error.code not in _BREAKS and not is_renewed and not is_forgotten:
        return None
    longest = min(_LONGEST_BREAK_WAIT, _FIRST_BREAK_WAIT * 2.0 ** min(breaks - 1, 10))
    backoff: float = longest * (0.5 + random / 2)
    return max(backoff, error.retry_after or 0.0)
