"""Decides what an agent does after a stream or a registration has ended.

Does no I/O. Times are monotonic milliseconds.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from .next_step import (
    Attempts,
    End,
    NextStep,
    asks_after_loss,
    asks_after_nothing_new,
    asks_for_endpoints,
    decide_next_step,
    full_jitter,
)
from .pace import Pace

GOODBYE_LIMIT_MS = 5_000.0
# Sessions that end sooner than this count as consecutive failures. Otherwise agents would reconnect in a tight loop to
# a server that welcomes them and then ends their streams.
_STEADY_AFTER_MS = 10_000.0
# The maximum jitter before a move. It keeps the agents of one replica from moving all at the same time.
_MOVE_JITTER_MS = 1_000.0
_NO_REPLICA = End("unreachable", message="no health replica is known")


@dataclass(frozen=True)
class Attempt:
    """One round over a list of endpoints, tried in order."""

    endpoint: str
    rest: tuple[str, ...]
    places: tuple[str, ...]
    """The complete list, for a second pass with the node's other key."""
    is_other_key: bool = False
    not_before_ms: float = 0.0
    """The earliest time of the next round. A replica that is shutting down sets it."""
    has_asked: bool = False
    """Whether this round has already asked the registry for endpoints. Each round asks only once."""


@dataclass(frozen=True)
class Question:
    """Why the agent asks the registry for endpoints."""

    end: End
    """How the last attempt to open a stream ended."""
    round: Attempt
    """The round to continue after the response."""


@dataclass(frozen=True)
class Move:
    """An attempt to open a stream elsewhere while the current one continues."""

    is_own_wish: bool
    """Whether the agent started the move itself in order to use a new key at the same replica."""
    attempts: int
    until_ms: float
    attempt: Attempt | None = None
    """The attempt in progress. None while the move waits."""
    over: End | None = None
    """How the current stream ended while the next one was being opened. None while the current stream continues."""


@dataclass(frozen=True)
class LiveSession:
    """A session that a server has welcomed."""

    endpoint: str
    epoch: int
    since_ms: float


@dataclass(frozen=True)
class Event:
    """An input of the agent's state machine.

    ``kind`` is "loaded", "registered", "not-registered", "opened", "not-opened", "session-ended", "move-asked",
    "acked", "membership", "due", "close" or "abort".
    """

    kind: str
    is_registered: bool = False
    endpoints: tuple[str, ...] = ()
    membership: str = ""
    epoch: int = 0
    end: End = field(default_factory=lambda: End("left"))
    has_other_key: bool = False
    has_newer_key: bool = False
    """For "opened": whether the server was offered a next key after the Hello was signed."""
    pace: Pace = field(default_factory=Pace)
    is_own_wish: bool = False
    retry_after_ms: float = 0.0


@dataclass(frozen=True)
class Effect:
    """What the shell must do: "register", "open", "hold", "drop", "give-up", "goodbye", "forget" or "log-end"."""

    kind: str
    endpoint: str = ""
    end: End | None = None
    next: NextStep | None = None


@dataclass(frozen=True)
class AgentState:
    """The complete state that decides what an agent does next."""

    stage: str
    """"starting", "registering", "opening", "connected", "waiting", "idle", "closing" or "closed"."""
    turn: int
    question: Question | None = None
    """Set while the agent registers only to ask for endpoints; None if the registration itself is due."""
    attempt: Attempt | None = None
    move: Move | None = None
    until_ms: float = 0.0
    held: LiveSession | None = None
    membership: str = ""
    endpoints: tuple[str, ...] = ()
    """The health endpoints from the last registration or Welcome that named at least one."""
    sent_to: tuple[str, ...] = ()
    """The endpoints of the last request to move, until a Welcome names endpoints. They are tried first."""
    pace: Pace = field(default_factory=Pace)
    must_register: bool = True
    failures: int = 0
    unreachable: int = 0
    """The number of consecutive endpoints that accepted no agents."""
    asks_at_ms: float = 0.0
    """The earliest time to ask the registry for endpoints."""
    has_connected: bool = False
    rejected_at_ms: float | None = None

    @staticmethod
    def begin(random01: float) -> AgentState:
        """Return the state of an agent that has just started. ``random01`` spreads the agents of a fleet over its
        replicas.
        """
        return AgentState("starting", int(random01 * 1_024))

    @property
    def due_at_ms(self) -> float | None:
        """When the next "due" event is needed."""
        if self.stage == "waiting":
            return self.until_ms
        return self.move.until_ms if self.stage == "connected" and self.move and not self.move.attempt else None

    @property
    def attempt_under_way(self) -> Attempt | None:
        """The attempt in progress."""
        if self.stage == "opening":
            return self.attempt
        return self.move.attempt if self.stage == "connected" and self.move else None


Step = tuple[AgentState, tuple[Effect, ...]]


@dataclass(frozen=True)
class _Input:
    now_ms: float
    random01: float


def step_agent(state: AgentState, event: Event, now_ms: float, random01: float) -> Step:
    """Decide what an event does to an agent. Events that arrive too late for the current stage change nothing."""
    at = _Input(now_ms, random01)
    kind, stage = event.kind, state.stage
    if kind == "loaded" and stage == "starting":
        known = replace(state, must_register=not event.is_registered, endpoints=event.endpoints)
        return _begin_attempt(known, at)
    if kind == "registered" and stage == "registering":
        return _on_registered(state, event, at)
    if kind == "not-registered" and stage == "registering":
        return _on_not_registered(state, event.end, at)
    if kind == "opened":
        return _on_opened(state, event, at)
    if kind == "not-opened":
        return _on_not_opened(state, event, at)
    if kind == "session-ended":
        return _on_session_ended(state, event, at)
    if kind == "move-asked":
        return _on_move_asked(state, event, at), ()
    if kind == "acked":
        is_steady = state.held is not None and now_ms - state.held.since_ms >= _STEADY_AFTER_MS
        return replace(state, failures=0 if is_steady else state.failures, rejected_at_ms=None), ()
    if kind == "membership":
        return replace(state, membership=event.membership or state.membership), ()
    if kind == "due":
        return _on_due(state, at)
    if kind == "close":
        return _close(state)
    if kind == "abort" and stage != "closed":
        return replace(state, stage="closed", held=None), (Effect("give-up"), Effect("drop"))
    return state, ()


def _on_registered(state: AgentState, event: Event, at: _Input) -> Step:
    endpoints = event.endpoints or state.endpoints
    known = replace(state, membership=event.membership, endpoints=endpoints, must_register=False)
    if state.question is None:
        return _begin_opening(replace(known, unreachable=0), True, at)
    news = tuple(one for one in endpoints if one not in state.endpoints and one not in state.sent_to)
    asks_at = asks_after_nothing_new(state.has_connected, at.now_ms, at.random01)
    asked = replace(known, unreachable=0) if news else replace(known, asks_at_ms=asks_at)
    return _go_on(asked, state.question, news, at)


def _on_not_registered(state: AgentState, end: End, at: _Input) -> Step:
    if state.question is None:
        return _after_end(state, end, at)
    asks_at = asks_after_nothing_new(state.has_connected, at.now_ms, at.random01) + (end.retry_after_ms or 0.0)
    asked = replace(state, asks_at_ms=asks_at)
    return _after_end(asked, end, at) if end.ends_round else _go_on(asked, state.question, (), at)


def _go_on(state: AgentState, question: Question, news: tuple[str, ...], at: _Input) -> Step:
    # Continue the round after the registry has returned endpoints. Try the new ones first.
    places = _distinct(_in_turn(news, state.turn), question.round.rest)
    if not places:
        return _after_end(state, question.end, at, question.round.not_before_ms)
    following = replace(question.round, endpoint=places[0], rest=places[1:], places=places, has_asked=True)
    return _open(state, following)


def _on_opened(state: AgentState, event: Event, at: _Input) -> Step:
    attempt = state.attempt_under_way
    if attempt is None:
        return state, ()
    opened = replace(
        state,
        stage="connected",
        # The agent ignored the request to move to the new key while it opened this stream. Schedule the move now.
        move=_begin_move(True, 0.0, at) if event.has_newer_key else None,
        attempt=None,
        held=LiveSession(attempt.endpoint, event.epoch, at.now_ms),
        membership=event.membership or state.membership,
        # A control plane without health replicas returns no endpoints. In that case, keep the previous ones.
        endpoints=event.endpoints or state.endpoints,
        sent_to=() if event.endpoints else state.sent_to,
        unreachable=0,
        has_connected=True,
    )
    return opened, (Effect("hold"),)


def _on_move_asked(state: AgentState, event: Event, at: _Input) -> AgentState:
    if state.stage != "connected":
        return state
    following = _begin_move(event.is_own_wish, event.retry_after_ms, at)
    if state.move is not None:
        if event.is_own_wish:
            return state
        # If a stream is already being opened, continue with it. The server's request to move replaces the agent's own
        # move.
        following = replace(following, attempts=state.move.attempts)
        if state.move.attempt is not None:
            following = replace(state.move, is_own_wish=False)
    return replace(state, sent_to=state.sent_to if event.is_own_wish else event.endpoints, move=following)


def _distinct(*lists: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(endpoint for endpoints in lists for endpoint in endpoints))


def _begin_move(is_own_wish: bool, retry_after_ms: float, at: _Input) -> Move:
    jitter = full_jitter(0, _MOVE_JITTER_MS, _MOVE_JITTER_MS, at.random01)
    return Move(is_own_wish, 0, at.now_ms + retry_after_ms + jitter)


def _on_not_opened(state: AgentState, event: Event, at: _Input) -> Step:
    begun = state.attempt_under_way
    if begun is None:
        return state, ()
    end, is_gone = event.end, event.end.is_of_endpoint
    told_ms = at.now_ms + (end.retry_after_ms or 0.0) if is_gone else 0.0
    attempt = replace(begun, not_before_ms=max(begun.not_before_ms, told_ms))
    turned = replace(state, turn=state.turn + 1, unreachable=state.unreachable + 1 if is_gone else 0)
    if is_gone and not attempt.has_asked and _may_ask(turned, not attempt.rest, at):
        return _register(turned, Question(end, attempt))
    if is_gone and attempt.rest:
        return _open(turned, replace(attempt, endpoint=attempt.rest[0], rest=attempt.rest[1:]))
    if event.has_other_key and not attempt.is_other_key and attempt.places:
        first, *others = attempt.places
        return _open(turned, replace(attempt, endpoint=first, rest=tuple(others), is_other_key=True))
    if turned.stage == "connected" and turned.move is not None:
        return _after_failed_move(turned, turned.move, end, at, attempt.not_before_ms)
    return _after_end(turned, end, at, attempt.not_before_ms)


def _may_ask(state: AgentState, is_round_over: bool, at: _Input) -> bool:
    # Whether the registry can be asked for endpoints now.
    is_due = state.held is None and at.now_ms >= state.asks_at_ms
    return is_due and asks_for_endpoints(state.unreachable, state.has_connected, is_round_over)


def _after_failed_move(state: AgentState, move: Move, end: End, at: _Input, not_before_ms: float) -> Step:
    following, counted = _decide(state, end, at)
    if following.is_idle or following.must_register or end.is_decision:
        after, effects = _follow(replace(counted, held=None), end, following, at)
        return after, effects if move.over else (Effect("drop"), *effects)
    if move.over is not None:
        return _after_end(replace(counted, held=None), _end_of_move(move.over), at, not_before_ms)
    until_ms = max(not_before_ms, at.now_ms + following.delay_ms)
    again = replace(move, attempts=move.attempts + 1, attempt=None, until_ms=until_ms)
    return replace(counted, move=again), ()


def _on_session_ended(state: AgentState, event: Event, at: _Input) -> Step:
    if state.stage == "closing":
        return replace(state, stage="closed", held=None), ()
    if state.stage != "connected":
        return state, ()
    asks_at = max(state.asks_at_ms, asks_after_loss(at.now_ms, at.random01))
    lost = replace(state, pace=event.pace, turn=state.turn + 1, asks_at_ms=asks_at)
    move = state.move
    if move is None:
        return _after_end(replace(lost, held=None), event.end, at)
    if move.attempt is not None:
        return replace(lost, move=replace(move, over=event.end)), ()
    return _after_end(replace(lost, held=None), _end_of_move(event.end) if move.attempts > 0 else event.end, at)


def _on_due(state: AgentState, at: _Input) -> Step:
    due = state.due_at_ms
    if due is None or due > at.now_ms:
        return state, ()
    if state.stage == "waiting":
        return _begin_attempt(state, at)
    if state.move is None or state.held is None:
        return state, ()
    here = state.held.endpoint
    places = (here,) if state.move.is_own_wish else _places_to_move_to(state, here, state.move.attempts)
    return _open(state, Attempt(places[0], places[1:], places))


def _places_to_move_to(state: AgentState, here: str, attempts: int) -> tuple[str, ...]:
    # Return the endpoints that the server named, then all other known endpoints.
    #
    # The current address is a last resort, because it may be a load balancer for many replicas: it follows only if no
    # other endpoint is known and all endpoints that the server named have been tried.
    others = _in_turn(tuple(one for one in state.endpoints if one != here), state.turn)
    is_here_too = not others and (attempts > 0 or not state.sent_to)
    return _distinct(state.sent_to, others, (here,) if is_here_too else ())


def _close(state: AgentState) -> Step:
    if state.stage in ("closing", "closed"):
        return state, ()
    is_over = state.stage == "connected" and state.move is not None and state.move.over is not None
    if state.held is None or is_over:
        return replace(state, stage="closed", held=None), (Effect("give-up"),)
    # Abandon the stream that is being opened, and send the goodbye on the current one.
    return replace(state, stage="closing"), (Effect("give-up"), Effect("goodbye"))


def _begin_attempt(state: AgentState, at: _Input) -> Step:
    return _register(state, None) if state.must_register else _begin_opening(state, False, at)


def _register(state: AgentState, question: Question | None) -> Step:
    return replace(state, stage="registering", question=question), (Effect("register"),)


def _begin_opening(state: AgentState, has_asked: bool, at: _Input) -> Step:
    places = _distinct(state.sent_to, _in_turn(state.endpoints, state.turn))
    if not places:
        if not has_asked and _may_ask(state, True, at):
            return _register(state, Question(_NO_REPLICA, Attempt("", (), ())))
        return _after_end(state, _NO_REPLICA, at)
    return _open(state, Attempt(places[0], places[1:], places, has_asked=has_asked))


def _open(state: AgentState, attempt: Attempt) -> Step:
    effects = (Effect("open", endpoint=attempt.endpoint),)
    if state.stage == "connected" and state.move is not None:
        return replace(state, move=replace(state.move, attempt=attempt)), effects
    return replace(state, stage="opening", attempt=attempt), effects


def _after_end(state: AgentState, end: End, at: _Input, not_before_ms: float = 0.0) -> Step:
    following, counted = _decide(state, end, at)
    if not following.is_idle:
        following = replace(following, delay_ms=max(following.delay_ms, not_before_ms - at.now_ms))
    return _follow(counted, end, following, at)


def _decide(state: AgentState, end: End, at: _Input) -> tuple[NextStep, AgentState]:
    rejected_at = state.rejected_at_ms
    if end.is_rejection and rejected_at is None:
        rejected_at = at.now_ms
    following = decide_next_step(
        end,
        Attempts(
            state.failures,
            0.0 if rejected_at is None else at.now_ms - rejected_at,
            state.pace.silence_limit_ms,
            at.random01,
        ),
    )
    return following, replace(state, rejected_at_ms=rejected_at, failures=state.failures + 1)


def _follow(state: AgentState, end: End, following: NextStep, at: _Input) -> Step:
    log = Effect("log-end", end=end, next=following)
    quiet = replace(state, move=None, attempt=None)
    if following.is_idle:
        return replace(quiet, stage="idle"), (log, Effect("forget"))
    waiting = replace(
        quiet,
        stage="waiting",
        until_ms=at.now_ms + following.delay_ms,
        must_register=state.must_register or following.must_register,
    )
    return waiting, (log,)


def _end_of_move(end: End) -> End:
    # The move's own Hello may have taken over the session although its Welcome was lost.
    return End("silent") if end.kind == "refused" and end.reason == "SESSION_SUPERSEDED" else end


def _in_turn(places: tuple[str, ...], turn: int) -> tuple[str, ...]:
    first = turn % len(places) if places else 0
    return places[first:] + places[:first]
