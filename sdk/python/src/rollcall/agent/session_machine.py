"""Decides what a heartbeat stream does on a frame, a timer or a request. Does no I/O. Times are monotonic
milliseconds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

from ..health.v1 import health_pb2
from ..node.v1 import node_pb2
from .agent_machine import GOODBYE_LIMIT_MS
from .ends import end_of_go_away
from .next_step import End
from .pace import Pace
from .reports import ReportEffect, ReportState

# How long to wait for a Challenge on a new connection before abandoning it. TCP would wait for minutes.
_CONNECT_TIMEOUT_MS = 5_000.0
_WELCOME_TIMEOUT_MS = 20_000.0
# How long before a Beat to measure usage, so that the Beat carries fresh data.
_MEASURE_LEAD_MS = 1_000.0
_TELL_TIME_EVERY_MS = 60_000.0
_MOST_REASON = 1_024
_MOVE = health_pb2.GO_AWAY_ACTION_MOVE
NEVER = math.inf


@dataclass(frozen=True)
class SessionEvent:
    """An input of a stream's state machine.

    ``kind`` is "frame", "described" (the digest for the Hello was computed), "info-read", "due",
    "stream-ended", "work-changed", "look", "goodbye" or "drop".
    """

    kind: str
    frame: health_pb2.HeartbeatResponse = field(default_factory=health_pb2.HeartbeatResponse)
    challenge: health_pb2.Challenge = field(default_factory=health_pb2.Challenge)
    digest: bytes = b""
    info: node_pb2.NodeInfo = field(default_factory=node_pb2.NodeInfo)
    is_wanted: bool = False
    """Whether the server asked for the complete description."""
    end: End = field(default_factory=lambda: End("left"))
    ids: tuple[str, ...] = ()
    wanted_specs: tuple[str, ...] = ()
    reason: str = ""
    leaves_work: bool = False
    """Whether executions continue and the agent will return."""


@dataclass(frozen=True)
class SessionEffect:
    """What the shell must do, in order.

    For "measure", "describe", "read-info", "send-hello", "send-beat", "send-info", "send-report",
    "send-want-specs", "send-goodbye" and "cancel", the shell does the work itself. It notifies the agent of
    "opened", "settings", "membership", "acked", "executions", "spec", "report-acked", "log-request",
    "authorities", "move-asked" and "ended".
    """

    kind: str
    frame: health_pb2.HeartbeatResponse = field(default_factory=health_pb2.HeartbeatResponse)
    challenge: health_pb2.Challenge = field(default_factory=health_pb2.Challenge)
    settings: health_pb2.Settings = field(default_factory=health_pb2.Settings)
    digest: bytes = b""
    tells_time: bool = False
    refresh: bool = False
    is_wanted: bool = False
    sequence: int = 0
    settings_generation: int = 0
    info: node_pb2.NodeInfo = field(default_factory=node_pb2.NodeInfo)
    number: int = 0
    is_whole: bool = False
    ids: tuple[str, ...] = ()
    reason: str = ""
    leaves_work: bool = False
    end: End = field(default_factory=lambda: End("left"))


@dataclass(frozen=True)
class SessionState:
    """The agent's state of one heartbeat stream."""

    phase: str
    """"connecting", "greeting", "open", "leaving" or "ended"."""
    pace: Pace
    info_check_ms: float
    patience_at_ms: float
    reports: ReportState | None
    """None on a node without executions."""
    sequence: int = 0
    last_beat_at_ms: float = 0.0
    last_ack_at_ms: float = 0.0
    unanswered_since_ms: float = NEVER
    settings_generation: int = 0
    told_generation: int = 0
    time_told_at_ms: float = -NEVER
    known_digest: bytes = b""
    """The digest of the NodeInfo that the server has, or that it can request because the Hello named it."""
    info_sent_at_ms: float = 0.0
    beat_at_ms: float = NEVER
    measure_at_ms: float = NEVER
    look_at_ms: float = NEVER

    @staticmethod
    def begin(pace: Pace, info_check_ms: float, now_ms: float, reports: ReportState | None) -> SessionState:
        """Return the state of a stream that starts to connect."""
        return SessionState("connecting", pace, info_check_ms, now_ms + _CONNECT_TIMEOUT_MS, reports)

    @property
    def report_at_ms(self) -> float:
        """When a report is due."""
        at = self.reports.next_due_ms if self.phase == "open" and self.reports else None
        return NEVER if at is None else at

    @property
    def next_due_ms(self) -> float:
        """When the next "due" event is needed."""
        return min(self.beat_at_ms, self.measure_at_ms, self.look_at_ms, self.patience_at_ms, self.report_at_ms)


Step = tuple[SessionState, tuple[SessionEffect, ...]]


def step_session(state: SessionState, event: SessionEvent, now_ms: float) -> Step:
    """Decide what an event does to a stream. An ended stream ignores all events."""
    kind = event.kind
    if state.phase == "ended":
        return state, ()
    if kind == "frame":
        return _on_frame(state, event.frame, now_ms)
    if kind == "described":
        if state.phase != "greeting":
            return state, ()
        told, tells_time = _tell_time(state, now_ms)
        hello = SessionEffect("send-hello", challenge=event.challenge, digest=event.digest, tells_time=tells_time)
        return replace(told, known_digest=event.digest), (hello,)
    if kind == "info-read":
        return _on_info_read(state, event, now_ms)
    if kind == "due":
        return _on_due(state, now_ms)
    if kind == "stream-ended":
        return _end(state, event.end)
    if kind == "work-changed":
        if state.reports is None:
            return state, ()
        return _with_reports(state, *state.reports.when_changed(event.ids, event.wanted_specs, now_ms))
    if kind == "look":
        # Use the cached description, because reading the machine takes seconds and an error in it must not delay
        # the report.
        return state, (SessionEffect("read-info"),) if state.phase == "open" else ()
    if kind == "goodbye" and state.phase == "open":
        leaving = replace(_nothing_due(state), phase="leaving", patience_at_ms=now_ms + GOODBYE_LIMIT_MS)
        reason = event.reason.encode()[:_MOST_REASON].decode("utf-8", "ignore")
        return leaving, (SessionEffect("send-goodbye", reason=reason, leaves_work=event.leaves_work),)
    return _end(state, End("left"))


def _on_frame(state: SessionState, frame: health_pb2.HeartbeatResponse, now_ms: float) -> Step:
    which = frame.WhichOneof("frame")
    if which == "challenge" and state.phase == "connecting":
        greeting = replace(state, phase="greeting", patience_at_ms=now_ms + _WELCOME_TIMEOUT_MS)
        return greeting, (SessionEffect("measure"), SessionEffect("describe", challenge=frame.challenge))
    if which == "welcome" and state.phase == "greeting":
        return _on_welcome(state, frame, now_ms)
    if which == "ack" and state.phase == "open":
        return _on_ack(state, frame.ack, now_ms)
    if which == "settings":
        known = replace(state, settings_generation=frame.settings.generation)
        effects = (SessionEffect("settings", settings=frame.settings),)
        return _keep_pace(known, state.pace.after(frame.settings), now_ms), effects
    if which == "membership":
        return state, (SessionEffect("membership", frame=frame),)
    if which == "authorities":
        return state, (SessionEffect("authorities", frame=frame),)
    if which == "go_away":
        if frame.go_away.action != _MOVE or state.phase != "open":
            return _end(state, end_of_go_away(frame.go_away))
        return state, (SessionEffect("move-asked", frame=frame),)
    if state.reports is None:
        return state, ()
    if which == "executions":
        reports = state.reports.when_asked(now_ms) if frame.executions.report_wanted else state.reports
        return _with_news(_with_reports(state, reports), SessionEffect("executions", frame=frame))
    if which == "spec":
        reports = state.reports.when_spec_came(frame.spec.digest.hex())
        return _with_news(_with_reports(state, reports), SessionEffect("spec", frame=frame))
    if which == "report_ack":
        reports = state.reports.when_acked(frame.report_ack.number, now_ms)
        news = SessionEffect("report-acked", number=frame.report_ack.number)
        return _with_news(_with_reports(state, reports), news)
    if which == "log_request" and state.phase == "open":
        return state, (SessionEffect("log-request", frame=frame),)
    # Ignore frames that are unexpected or that a newer server added.
    return state, ()


def _with_news(step: Step, news: SessionEffect) -> Step:
    state, effects = step
    return (state, (news, *effects)) if state.phase == "open" else step


def _with_reports(state: SessionState, reports: ReportState, effects: tuple[ReportEffect, ...] = ()) -> Step:
    # Before the Welcome, nothing is sent: the first report includes all changes.
    if state.phase != "open":
        return replace(state, reports=replace(reports, asked={})), ()
    done = tuple(SessionEffect(it.kind, number=it.number, is_whole=it.is_whole, ids=it.ids) for it in effects)
    return replace(state, reports=reports), done


def _on_welcome(state: SessionState, frame: health_pb2.HeartbeatResponse, now_ms: float) -> Step:
    welcome = frame.welcome
    opened = replace(
        state,
        phase="open",
        pace=state.pace.after(welcome.settings),
        settings_generation=welcome.settings.generation,
        last_ack_at_ms=now_ms,
        info_sent_at_ms=now_ms,
        patience_at_ms=NEVER,
    )
    beating, beat = _beat(opened, now_ms)
    settings = (SessionEffect("settings", settings=welcome.settings),) if welcome.HasField("settings") else ()
    info = (SessionEffect("read-info", is_wanted=True),) if welcome.node_info_wanted else ()
    looking = replace(beating, look_at_ms=_next_look_ms(beating, now_ms))
    return looking, (*settings, SessionEffect("opened", frame=frame), beat, *info)


def _on_ack(state: SessionState, ack: health_pb2.Ack, now_ms: float) -> Step:
    # A late Ack shows that the connection works, but does not answer the last Beat.
    unanswered = NEVER if ack.sequence >= state.sequence else state.last_beat_at_ms
    heard = replace(state, last_ack_at_ms=now_ms, unanswered_since_ms=unanswered)
    paced = _keep_pace(heard, state.pace.after_ack(ack.next_interval_ms), now_ms)
    return replace(paced, patience_at_ms=_patience(paced)), (SessionEffect("acked"),)


def _on_info_read(state: SessionState, event: SessionEvent, now_ms: float) -> Step:
    # The session may have begun to end while the machine's description was read.
    if state.phase != "open":
        return state, ()
    is_due = now_ms >= state.info_sent_at_ms + state.pace.info_ms
    is_sent = event.is_wanted or is_due or event.digest != state.known_digest
    sent = replace(state, known_digest=event.digest, info_sent_at_ms=now_ms) if is_sent else state
    looking = replace(sent, look_at_ms=_next_look_ms(sent, now_ms))
    return looking, (SessionEffect("send-info", info=event.info),) if is_sent else ()


def _on_due(state: SessionState, now_ms: float) -> Step:
    # Handle only the first item that is due. The shell calls again while anything is due.
    at = state.next_due_ms
    if at > now_ms:
        return state, ()
    if at == state.patience_at_ms:
        return _end(state, _end_of_patience(state.phase))
    if at == state.measure_at_ms:
        return replace(state, measure_at_ms=NEVER), (SessionEffect("measure"),)
    if at == state.beat_at_ms:
        after, beat = _beat(state, now_ms)
        return after, (beat,)
    if state.reports is not None and at == state.report_at_ms:
        return _with_reports(state, *state.reports.when_due(now_ms))
    return replace(state, look_at_ms=NEVER), (SessionEffect("read-info", refresh=True),)


def _end_of_patience(phase: str) -> End:
    if phase == "connecting":
        return End("unreachable", message="no answer within 5000 ms")
    return End("silent") if phase in ("greeting", "open") else End("left")


def _beat(state: SessionState, now_ms: float) -> tuple[SessionState, SessionEffect]:
    told, tells_time = _tell_time(state, now_ms)
    is_told = told.settings_generation == told.told_generation
    sent = replace(
        told,
        sequence=told.sequence + 1,
        last_beat_at_ms=now_ms,
        unanswered_since_ms=min(told.unanswered_since_ms, now_ms),
        told_generation=told.settings_generation,
    )
    effect = SessionEffect(
        "send-beat",
        sequence=sent.sequence,
        settings_generation=0 if is_told else told.settings_generation,
        tells_time=tells_time,
    )
    return replace(_schedule(sent, now_ms), patience_at_ms=_patience(sent)), effect


def _tell_time(state: SessionState, now_ms: float) -> tuple[SessionState, bool]:
    if now_ms - state.time_told_at_ms < _TELL_TIME_EVERY_MS:
        return state, False
    return replace(state, time_told_at_ms=now_ms), True


def _schedule(state: SessionState, now_ms: float) -> SessionState:
    at = max(now_ms, state.last_beat_at_ms + state.pace.heartbeat_ms)
    return replace(state, beat_at_ms=at, measure_at_ms=at - min(_MEASURE_LEAD_MS, (at - now_ms) / 2))


def _keep_pace(state: SessionState, pace: Pace, now_ms: float) -> SessionState:
    before = state.pace
    paced = replace(state, pace=pace)
    if state.phase != "open":
        return paced
    if pace.heartbeat_ms != before.heartbeat_ms:
        paced = _schedule(paced, now_ms)
    return paced if pace.info_ms == before.info_ms else replace(paced, look_at_ms=_next_look_ms(paced, now_ms))


def _next_look_ms(state: SessionState, now_ms: float) -> float:
    return min(now_ms + state.info_check_ms, max(now_ms, state.info_sent_at_ms + state.pace.info_ms))


def _patience(state: SessionState) -> float:
    # When the connection counts as dead, or NEVER if every Beat is answered.
    if state.unanswered_since_ms == NEVER:
        return NEVER
    return state.pace.silent_at_ms(state.last_ack_at_ms, state.unanswered_since_ms)


def _nothing_due(state: SessionState) -> SessionState:
    return replace(state, beat_at_ms=NEVER, measure_at_ms=NEVER, look_at_ms=NEVER, patience_at_ms=NEVER)


def _end(state: SessionState, why: End) -> Step:
    return replace(_nothing_due(state), phase="ended"), (SessionEffect("cancel"), SessionEffect("ended", end=why))
