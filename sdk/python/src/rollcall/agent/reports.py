"""Decides what a session reports to its server about executions. Does no I/O. Times are monotonic milliseconds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

# The time during which changes are gathered into one report.
_GATHER_MS = 50.0
# How long to wait for a ReportAck before sending a complete report.
_ACK_PATIENCE_MS = 20_000.0
_SPEC_PATIENCE_MS = 20_000.0
_MOST_SPECS = 100


@dataclass(frozen=True)
class ReportEffect:
    """What the shell must do: "send-report" or "send-want-specs"."""

    kind: str
    number: int = 0
    is_whole: bool = False
    ids: tuple[str, ...] = ()
    """The executions of a report, or the digests of specs in hexadecimal."""


@dataclass(frozen=True)
class ReportState:
    """What a session has reported."""

    is_known: bool
    """Whether the machine's executions have been read. An earlier, empty report would declare all of them lost."""
    number: int = 0
    in_flight: int = 0
    """The number of the report that waits for its ReportAck; 0 if none does. Only one report is sent at a time, so
    that changes are batched while the store is busy.
    """
    sent_at_ms: float = 0.0
    is_whole_due: bool = True
    changed: tuple[str, ...] = ()
    due_at_ms: float | None = None
    asked: Mapping[str, float] = field(default_factory=dict)
    """When each missing spec was requested, keyed by digest."""

    @staticmethod
    def begin(is_known: bool, now_ms: float) -> ReportState:
        """Return the state of a new session, which sends a complete report after the Welcome."""
        return ReportState(is_known, due_at_ms=now_ms if is_known else None)

    @property
    def next_due_ms(self) -> float | None:
        """When due() must be called next. None if it is not needed."""
        return self.sent_at_ms + _ACK_PATIENCE_MS if self.in_flight else self.due_at_ms

    def when_changed(
        self, ids: tuple[str, ...], wanted: tuple[str, ...], now_ms: float
    ) -> tuple[ReportState, tuple[ReportEffect, ...]]:
        """Record that executions have been read or have changed, and request missing specs."""
        at = now_ms + _GATHER_MS if self.is_known else now_ms
        changed = self.changed + tuple(one for one in dict.fromkeys(ids) if one not in self.changed)
        return replace(self, is_known=True, changed=changed)._schedule(at)._want(wanted, now_ms)

    def when_asked(self, now_ms: float) -> ReportState:
        """Handle the server's request for a complete report."""
        return replace(self, is_whole_due=True)._schedule(now_ms)

    def when_acked(self, number: int, now_ms: float) -> ReportState:
        """Record that all reports up to this one are in the store."""
        if self.in_flight == 0 or number < self.in_flight:
            return self
        return replace(self, in_flight=0)._schedule(now_ms)

    def when_spec_came(self, digest: str) -> ReportState:
        """Record that a spec arrived, or that the store does not have the spec."""
        return replace(self, asked={key: at for key, at in self.asked.items() if key != digest})

    def when_due(self, now_ms: float) -> tuple[ReportState, tuple[ReportEffect, ...]]:
        """Send a report if one is due. If the ReportAck of the last report is overdue, send a complete report."""
        at = self.next_due_ms
        if at is None or at > now_ms:
            return self, ()
        if self.in_flight:
            return replace(self, in_flight=0, is_whole_due=True)._schedule(now_ms), ()
        number = self.number + 1
        effect = ReportEffect("send-report", number, self.is_whole_due, () if self.is_whole_due else self.changed)
        sent = replace(
            self,
            number=number,
            in_flight=number,
            sent_at_ms=now_ms,
            is_whole_due=False,
            changed=(),
            due_at_ms=None,
        )
        return sent, (effect,)

    def _schedule(self, at_ms: float) -> ReportState:
        if not self.is_known or not (self.is_whole_due or self.changed):
            return self
        return replace(self, due_at_ms=at_ms if self.due_at_ms is None else min(at_ms, self.due_at_ms))

    def _want(self, wanted: tuple[str, ...], now_ms: float) -> tuple[ReportState, tuple[ReportEffect, ...]]:
        asked = {digest: at for digest, at in self.asked.items() if digest in wanted}
        fresh = sum(1 for at in asked.values() if now_ms - at < _SPEC_PATIENCE_MS)
        # Repeat the request for a spec that does not arrive.
        overdue = [one for one in wanted if one not in asked or now_ms - asked[one] >= _SPEC_PATIENCE_MS]
        digests = tuple(overdue[: max(0, _MOST_SPECS - fresh)])
        for digest in digests:
            asked[digest] = now_ms
        state = replace(self, asked=asked)
        return state, (ReportEffect("send-want-specs", ids=digests),) if digests else ()
