import { fullJitter } from "@rollcall/process";
import { silenceLimitMs } from "../stream/pace.ts";
import type { SessionEnd } from "../stream/session-end.ts";
import {
  type AgentEffect,
  type AgentEvent,
  type AgentInput,
  type AgentState,
  type AgentStep,
  type Attempt,
  dueAtMs,
  type Move,
} from "./agent-state.ts";
import { asksForEndpoints, decideNextStep, isDecision, isOfEndpoint, isRejection, type NextStep } from "./next-step.ts";

/** How long a goodbye may take to be delivered. */
export const GOODBYE_LIMIT_MS = 5_000;

/**
 * Ends of sessions that were shorter than this count as failures in a row: a server that welcomes its agents and ends
 * their streams is not asked in a tight loop.
 */
const STEADY_AFTER_MS = 10_000;

/** A move without a time of its own begins within this, so that the agents of one replica do not move at once. */
const MOVE_JITTER_MS = 1_000;

/** Decide what an event does to an agent. Events that come too late for its stage change nothing. */
export function stepAgent(state: AgentState, event: AgentEvent, input: AgentInput): AgentStep {
  const { stage } = state;
  switch (event.kind) {
    case "loaded": {
      if (stage.kind !== "starting") return stay(state);
      const { isRegistered, endpoints } = event;
      return beginAttempt({ ...state, mustRegister: !isRegistered, endpoints }, input);
    }
    case "registered": {
      if (stage.kind !== "registering") return stay(state);
      const { membership } = event;
      const endpoints = namedOrKnown(event.endpoints, state);
      const known = { ...state, membership, endpoints, mustRegister: false };
      const isNews = endpoints.some((endpoint) => !state.endpoints.includes(endpoint));
      if (stage.unanswered !== null && !isNews) return afterEnd(known, stage.unanswered, input);
      return beginOpening({ ...known, unreachable: 0 }, true, input);
    }
    case "not-registered":
      if (stage.kind !== "registering") return stay(state);
      return afterEnd(state, event.end.kind === "unreachable" ? (stage.unanswered ?? event.end) : event.end, input);
    case "opened":
      return onOpened(state, event, input);
    case "not-opened":
      return onNotOpened(state, event, input);
    case "session-ended":
      return onSessionEnded(state, event, input);
    case "move-asked":
      return onMoveAsked(state, event, input);
    case "acked":
      return stay({ ...state, failures: isSteady(state, input) ? 0 : state.failures, rejectedAtMs: null });
    case "membership":
      return stay({ ...state, membership: event.membership ?? state.membership });
    case "due":
      return onDue(state, input);
    case "close":
      return close(state, event.reason);
    case "abort":
      if (stage.kind === "closed") return stay(state);
      return { state: closed(state), effects: [{ kind: "give-up" }, { kind: "drop" }] };
  }
}

function isSteady({ held }: AgentState, { nowMs }: AgentInput): boolean {
  return held !== null && nowMs - held.sinceMs >= STEADY_AFTER_MS;
}

function onOpened(
  state: AgentState,
  event: Extract<AgentEvent, { readonly kind: "opened" }>,
  input: AgentInput,
): AgentStep {
  const attempt = attemptOf(state);
  if (attempt === null) return stay(state);
  const { epoch, endpoints, membership, hasNewerKey } = event;
  // The wish for a stream with that key came while this one was being opened, and was passed over.
  const move = hasNewerKey ? beginMove({ isOwnWish: true, retryAfterMs: 0 }, input) : null;
  return {
    state: {
      ...state,
      stage: { kind: "connected", move },
      held: { endpoint: attempt.endpoint, epoch, sinceMs: input.nowMs },
      membership: membership ?? state.membership,
      endpoints: namedOrKnown(endpoints, state),
      unreachable: 0,
      hasConnected: true,
    },
    effects: [{ kind: "hold" }],
  };
}

/** A control plane without a health replica names none: what was known before is the best guess then. */
function namedOrKnown(named: readonly string[], { endpoints }: AgentState): readonly string[] {
  return named.length > 0 ? named : endpoints;
}

function onNotOpened(
  state: AgentState,
  { end, hasOtherKey }: Extract<AgentEvent, { readonly kind: "not-opened" }>,
  input: AgentInput,
): AgentStep {
  const attempt = attemptOf(state);
  if (attempt === null) return stay(state);
  const unreachable = end.kind === "unreachable" ? state.unreachable + 1 : 0;
  const turned = { ...state, turn: state.turn + 1, unreachable };
  const [next, ...rest] = attempt.rest;
  if (isOfEndpoint(end) && next !== undefined) return open(turned, { ...attempt, endpoint: next, rest });
  if (hasOtherKey && !attempt.isOtherKey) {
    return openFirst(turned, { ...attempt, isOtherKey: true }) ?? afterFailure(turned, end, attempt.isFresh, input);
  }
  return afterFailure(turned, end, attempt.isFresh, input);
}

/** No endpoint has taken the agent in. */
function afterFailure(state: AgentState, end: SessionEnd, isFresh: boolean, input: AgentInput): AgentStep {
  const { stage } = state;
  if (stage.kind === "connected" && stage.move !== null) return afterFailedMove(state, stage.move, end, input);
  if (end.kind === "unreachable" && !isFresh && asksForEndpoints(state)) return register(state, end);
  return afterEnd(state, end, input);
}

function afterFailedMove(state: AgentState, move: Move, end: SessionEnd, input: AgentInput): AgentStep {
  const { next, state: counted } = decide(state, end, input);
  if (next.kind === "idle" || next.mustRegister || isDecision(end)) {
    const drop: readonly AgentEffect[] = move.over === null ? [{ kind: "drop" }] : [];
    return prepend(drop, follow({ ...counted, held: null }, end, next, input));
  }
  if (move.over !== null) return afterEnd({ ...counted, held: null }, endOfMove(move.over), input);
  const step = { kind: "waiting", untilMs: input.nowMs + next.delayMs } as const;
  return stay({ ...counted, stage: { kind: "connected", move: { ...move, attempts: move.attempts + 1, step } } });
}

function onSessionEnded(
  state: AgentState,
  { end, pace }: Extract<AgentEvent, { readonly kind: "session-ended" }>,
  input: AgentInput,
): AgentStep {
  const { stage } = state;
  if (stage.kind === "closing") return stay(closed(state));
  if (stage.kind !== "connected") return stay(state);
  const lost = { ...state, pace, turn: state.turn + 1 };
  const { move } = stage;
  if (move === null) return afterEnd({ ...lost, held: null }, end, input);
  if (move.step.kind === "opening")
    return stay({ ...lost, stage: { kind: "connected", move: { ...move, over: end } } });
  return afterEnd({ ...lost, held: null }, move.attempts > 0 ? endOfMove(end) : end, input);
}

function onMoveAsked(
  state: AgentState,
  event: Extract<AgentEvent, { readonly kind: "move-asked" }>,
  input: AgentInput,
): AgentStep {
  const { stage } = state;
  if (stage.kind !== "connected" || stage.move !== null) return stay(state);
  const known = { ...state, endpoints: knownAfter(state, event.endpoints) };
  return stay({ ...known, stage: { kind: "connected", move: beginMove(event, input) } });
}

/** Where a server sends its agents is newer than what they know; it does not name itself. */
function knownAfter({ endpoints, held }: AgentState, named: readonly string[]): readonly string[] {
  if (named.length === 0 || held === null) return endpoints;
  return [...named.filter((endpoint) => endpoint !== held.endpoint), held.endpoint];
}

function beginMove(
  asked: Pick<Extract<AgentEvent, { readonly kind: "move-asked" }>, "isOwnWish" | "retryAfterMs">,
  { nowMs, random01 }: AgentInput,
): Move {
  const jitterMs = fullJitter({ attempt: 0, baseMs: MOVE_JITTER_MS, maxMs: MOVE_JITTER_MS, random01 });
  const { isOwnWish, retryAfterMs } = asked;
  const step = { kind: "waiting", untilMs: nowMs + retryAfterMs + jitterMs } as const;
  return { isOwnWish, attempts: 0, step, over: null };
}

function onDue(state: AgentState, input: AgentInput): AgentStep {
  const atMs = dueAtMs(state);
  if (atMs === null || atMs > input.nowMs) return stay(state);
  const { stage, held } = state;
  if (stage.kind === "waiting") return beginAttempt(state, input);
  if (stage.kind !== "connected" || stage.move === null || held === null) return stay(state);
  const { move } = stage;
  // Here where no other one takes agents: one address may stand for many replicas.
  const others = move.isOwnWish ? [] : state.endpoints.filter((endpoint) => endpoint !== held.endpoint);
  const places = [...inTurn(others, state.turn), held.endpoint];
  const round = { places, isOtherKey: false, isFresh: false };
  return openFirst(state, round) ?? afterFailedMove(state, move, NO_REPLICA, input);
}

function close(state: AgentState, reason: string): AgentStep {
  const { stage } = state;
  if (stage.kind === "closing" || stage.kind === "closed") return stay(state);
  const giveUp: AgentEffect = { kind: "give-up" };
  const isOver = stage.kind === "connected" && stage.move !== null && stage.move.over !== null;
  if (state.held === null || isOver) return { state: closed(state), effects: [giveUp] };
  // The present stream is the one that says goodbye.
  return {
    state: { ...state, stage: { kind: "closing" } },
    effects: [giveUp, { kind: "goodbye", reason, limitMs: GOODBYE_LIMIT_MS }],
  };
}

function closed(state: AgentState): AgentState {
  return { ...state, stage: { kind: "closed" }, held: null };
}

/** Register where that is due, then open a stream. */
function beginAttempt(state: AgentState, input: AgentInput): AgentStep {
  return state.mustRegister ? register(state, null) : beginOpening(state, false, input);
}

function register(state: AgentState, unanswered: SessionEnd | null): AgentStep {
  return { state: { ...state, stage: { kind: "registering", unanswered } }, effects: [{ kind: "register" }] };
}

function beginOpening(state: AgentState, isFresh: boolean, input: AgentInput): AgentStep {
  const round = { places: inTurn(state.endpoints, state.turn), isOtherKey: false, isFresh };
  return openFirst(state, round) ?? afterFailure(state, NO_REPLICA, isFresh, input);
}

/** Null when there is no place to open a stream at. */
function openFirst(state: AgentState, round: Pick<Attempt, "places" | "isOtherKey" | "isFresh">): AgentStep | null {
  const [endpoint, ...rest] = round.places;
  return endpoint === undefined ? null : open(state, { ...round, endpoint, rest });
}

function open(state: AgentState, attempt: Attempt): AgentStep {
  const effects: readonly AgentEffect[] = [{ kind: "open", endpoint: attempt.endpoint }];
  const { stage } = state;
  if (stage.kind === "connected" && stage.move !== null) {
    const move: Move = { ...stage.move, step: { kind: "opening", attempt } };
    return { state: { ...state, stage: { kind: "connected", move } }, effects };
  }
  return { state: { ...state, stage: { kind: "opening", attempt } }, effects };
}

/** The attempt that is under way; null when there is none. */
function attemptOf({ stage }: AgentState): Attempt | null {
  if (stage.kind === "opening") return stage.attempt;
  if (stage.kind === "connected" && stage.move?.step.kind === "opening") return stage.move.step.attempt;
  return null;
}

function afterEnd(state: AgentState, end: SessionEnd, input: AgentInput): AgentStep {
  const { next, state: counted } = decide(state, end, input);
  return follow(counted, end, next, input);
}

function decide(state: AgentState, end: SessionEnd, { nowMs, random01 }: AgentInput) {
  const rejectedAtMs = isRejection(end) ? (state.rejectedAtMs ?? nowMs) : state.rejectedAtMs;
  const next = decideNextStep(end, {
    failures: state.failures,
    rejectedForMs: nowMs - (rejectedAtMs ?? nowMs),
    backoffMaxMs: silenceLimitMs(state.pace),
    random01,
  });
  return { next, state: { ...state, rejectedAtMs, failures: state.failures + 1 } };
}

function follow(state: AgentState, end: SessionEnd, next: NextStep, { nowMs }: AgentInput): AgentStep {
  const log: AgentEffect = { kind: "log-end", end, next };
  if (next.kind === "idle") {
    return { state: { ...state, stage: { kind: "idle" } }, effects: [log, { kind: "forget" }] };
  }
  const mustRegister = state.mustRegister || next.mustRegister;
  return {
    state: { ...state, mustRegister, stage: { kind: "waiting", untilMs: nowMs + next.delayMs } },
    effects: [log],
  };
}

const NO_REPLICA: SessionEnd = { kind: "unreachable", message: "no health replica is known" };

/** A Hello of this move may have taken the session although its Welcome was lost: no other process has the identity. */
function endOfMove(end: SessionEnd): SessionEnd {
  const isSuperseded = end.kind === "refused" && end.reason === "SESSION_SUPERSEDED";
  return isSuperseded ? { kind: "silent" } : end;
}

function inTurn(places: readonly string[], turn: number): readonly string[] {
  const first = places.length === 0 ? 0 : turn % places.length;
  return [...places.slice(first), ...places.slice(0, first)];
}

function prepend(effects: readonly AgentEffect[], step: AgentStep): AgentStep {
  return { state: step.state, effects: [...effects, ...step.effects] };
}

function stay(state: AgentState): AgentStep {
  return { state, effects: [] };
}
