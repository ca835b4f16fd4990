"""What a session tells its server about executions. Pure; times are monotonic milliseconds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

# Changes that come at once are one report.
_GATHER_MS = 50.0
# A report without a ReportAck is followed by a whole one.
_ACK_PATIENCE_MS = 20_000.0
_SPEC_PATIENCE_MS = 20_000.0
_MOST_SPECS = 100


@dataclass(frozen=True)
class ReportEffect:
    """What the shell does: "send-report" or "send-want-specs"."""

    kind: str
    number: int = 0
    is_whole: bool = False
    ids: tuple[str, ...] = ()
    """Executions of a report, or digests of specs in hexadecimal digits."""


@dataclass(frozen=True)
class ReportState:
    """What was told."""

    is_known: bool
    """The machine's executions are known; before that an empty report would call all of them lost."""
    number: int = 0
    in_flight: int = 0
    """The report without a ReportAck; one at a time, so that changes gather while the record is busy. 0: none."""
    sent_at_ms: float = 0.0
    is_whole_due: bool = True
    changed: tuple[str, ...] = ()
    due_at_ms: float | None = None
    asked: Mapping[str, float] = field(default_factory=dict)
    """When specs were asked for, by their digests."""

    @staticmethod
    def begin(is_known: bool, now_ms: float) -> ReportState:
        """After the Welcome a whole report is due."""
        return ReportState(is_known, due_at_ms=now_ms if is_known else None)

    @property
    def next_due_ms(self) -> float | None:
        """When the next due() is to come."""
        return self.sent_at_ms + _ACK_PATIENCE_MS if self.in_flight else self.due_at_ms

    def when_changed(
        self, ids: tuple[str, ...], wanted: tuple[str, ...], now_ms: float
    ) -> tuple[ReportState, tuple[ReportEffect, ...]]:
        """The machine's executions are known, all of them or some of them have changed; or specs are missing."""
        at = now_ms + _GATHER_MS if self.is_known else now_ms
        changed = self.changed + tuple(one for one in dict.fromkeys(ids) if one not in self.changed)
        return replace(self, is_known=True, changed=changed)._schedule(at)._want(wanted, now_ms)

    def when_asked(self, now_ms: float) -> ReportState:
        """The server wants a whole report."""
        return replace(self, is_whole_due=True)._schedule(now_ms)

    def when_acked(self, number: int, now_ms: float) -> ReportState:
        """All reports up to this one are in the record."""
        if self.in_flight == 0 or number < self.in_flight:
            return self
        return replace(self, in_flight=0)._schedule(now_ms)

    def when_spec_came(self, digest: str) -> ReportState:
        """A spec is not missing any more, or is missing for good."""
        return replace(self, asked={key: at for key, at in self.asked.items() if key != digest})

    def when_due(self, now_ms: float) -> tuple[ReportState, tuple[ReportEffect, ...]]:
        """Send a report, or give up waiting for the answer to the last one."""
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
        # One that does not come is asked for again.
        overdue = [one for one in wanted if one not in asked or now_ms - asked[one] >= _SPEC_PATIENCE_MS]
        digests = tuple(overdue[: max(0, _MOST_SPECS - fresh)])
        for digest in digests:
            asked[digest] = now_ms
        state = replace(self, asked=asked)
        return state, (ReportEffect("send-want-specs", ids=digests),) if digests else ()
