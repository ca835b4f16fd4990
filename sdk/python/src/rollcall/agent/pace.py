"""A session's timing, as set by the server, in milliseconds."""

from __future__ import annotations

import math
from dataclasses import dataclass

from google.protobuf.duration_pb2 import Duration

from ..health.v1 import health_pb2

# The shortest time between two Beats, even if the server sets a shorter one.
_SHORTEST_INTERVAL_MS = 10.0
_LONGEST_SILENCE_MS = 20_000.0
# The time within which a healthy server acknowledges a Beat. A connection does not count as silent before
# then, even if Beats are far apart.
_ANSWER_TIME_MS = 5_000.0


def ms_of(duration: Duration) -> float:
    """Convert a duration to milliseconds, rounded up."""
    return duration.seconds * 1000.0 + math.ceil(duration.nanos / 1_000_000)


@dataclass(frozen=True)
class Pace:
    """The current intervals."""

    heartbeat_ms: float = 15_000.0
    info_ms: float = 60_000.0
    """The time between reports of the node's description."""
    unhealthy_after_ms: float = 60_000.0
    """The silence after which the node would be declared UNHEALTHY."""

    def after(self, settings: health_pb2.Settings) -> Pace:
        """Apply the server's settings. Omitted fields keep their value."""
        return Pace(
            _set(settings.heartbeat_interval, self.heartbeat_ms),
            _set(settings.info_interval, self.info_ms),
            _set(settings.unhealthy_after, self.unhealthy_after_ms),
        )

    def after_ack(self, next_interval_ms: int) -> Pace:
        """Apply the interval of an Ack; 0 keeps the current one."""
        if next_interval_ms == 0:
            return self
        return Pace(max(_SHORTEST_INTERVAL_MS, float(next_interval_ms)), self.info_ms, self.unhealthy_after_ms)

    @property
    def silence_limit_ms(self) -> float:
        """How long the connection may be silent: 20 s, but at most a third of ``unhealthy_after_ms``."""
        return min(_LONGEST_SILENCE_MS, self.unhealthy_after_ms / 3)

    def silent_at_ms(self, last_ack_at_ms: float, unanswered_since_ms: float) -> float:
        """Return when a connection counts as dead.

        That is ``silence_limit_ms`` after the last Ack, but not before the oldest unanswered Beat has waited
        for _ANSWER_TIME_MS or for ``silence_limit_ms``, whichever is shorter.
        """
        limit = self.silence_limit_ms
        return max(last_ack_at_ms + limit, unanswered_since_ms + min(limit, _ANSWER_TIME_MS))


def _set(duration: Duration, current: float) -> float:
    ms = ms_of(duration)
    return max(_SHORTEST_INTERVAL_MS, ms) if ms > 0 else current
