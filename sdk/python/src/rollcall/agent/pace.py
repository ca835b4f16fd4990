"""How a session keeps time, as the server set it. In milliseconds."""

from __future__ import annotations

import math
from dataclasses import dataclass

from google.protobuf.duration_pb2 import Duration

from ..health.v1 import health_pb2

# Nothing that a server says makes an agent beat more often than this.
_SHORTEST_INTERVAL_MS = 10.0
_LONGEST_SILENCE_MS = 20_000.0
# A healthy server answers a Beat within this time; a stretched interval must not be taken for silence before.
_ANSWER_TIME_MS = 5_000.0


def ms_of(duration: Duration) -> float:
    """Milliseconds of a duration, rounded up."""
    return duration.seconds * 1000.0 + math.ceil(duration.nanos / 1_000_000)


@dataclass(frozen=True)
class Pace:
    """The intervals in force."""

    heartbeat_ms: float = 15_000.0
    info_ms: float = 60_000.0
    """Between reports of what the node is."""
    unhealthy_after_ms: float = 60_000.0
    """Silence after which the node would be declared UNHEALTHY."""

    def after(self, settings: health_pb2.Settings) -> Pace:
        """Take over what a server sets; what it leaves out stays."""
        return Pace(
            _set(settings.heartbeat_interval, self.heartbeat_ms),
            _set(settings.info_interval, self.info_ms),
            _set(settings.unhealthy_after, self.unhealthy_after_ms),
        )

    def after_ack(self, next_interval_ms: int) -> Pace:
        """Take over the interval of an Ack; 0 leaves it as it is."""
        if next_interval_ms == 0:
            return self
        return Pace(max(_SHORTEST_INTERVAL_MS, float(next_interval_ms)), self.info_ms, self.unhealthy_after_ms)

    @property
    def silence_limit_ms(self) -> float:
        """How long the path may be silent: 20 s, and never more than a third of the time to UNHEALTHY."""
        return min(_LONGEST_SILENCE_MS, self.unhealthy_after_ms / 3)

    def silent_at_ms(self, last_ack_at_ms: float, unanswered_since_ms: float) -> float:
        """When a path counts as dead; where Beats are far apart it is the missing answer that counts."""
        limit = self.silence_limit_ms
        return max(last_ack_at_ms + limit, unanswered_since_ms + min(limit, _ANSWER_TIME_MS))


def _set(duration: Duration, current: float) -> float:
    ms = ms_of(duration)
    return max(_SHORTEST_INTERVAL_MS, ms) if ms > 0 else current
