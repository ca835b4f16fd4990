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
import { decideNextStep, isDecision, isRejection, type NextStep } from "./next-step.ts";

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
      return beginAttempt({ ...state, mustRegister: !isRegistered, endpoints }, "no", input);
    }
    case "registered": {
      if (stage.kind !== "registering") return stay(state);
      const { membership, endpoints } = event;
      return beginOpening({ ...state, membership, endpoints, mustRegister: false, unreachable: 0 }, input);
    }
    case "not-registered":
      if (stage.kind !== "registering") return stay(state);
      return stage.isOptional && event.end.kind === "unreachable"
        ? beginOpening(state, input)
        : afterEnd(state, event.end, input);
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
  const move = hasNewerKey ? beginMove({ isOwnWish: true, endpoints: [], retryAfterMs: 0 }, input) : null;
  return {
    state: {
      ...state,
      stage: { kind: "connected", move },
      held: { endpoint: attempt.endpoint, epoch, sinceMs: input.nowMs },
      membership: membership ?? state.membership,
      // A control plane without a health replica names none: what was known before is the best guess then.
      endpoints: endpoints.length > 0 ? endpoints : state.endpoints,
      unreachable: state.held === null ? 0 : state.unreachable,
      hasConnected: true,
    },
    effects: [{ kind: "hold" }],
  };
}

function onNotOpened(
  state: AgentState,
  { end, hasOtherKey }: Extract<AgentEvent, { readonly kind: "not-opened" }>,
  input: AgentInput,
): AgentStep {
  const attempt = attemptOf(state);
  if (attempt === null) return stay(state);
  const turned = { ...state, turn: state.turn + 1 };
  const [next, ...rest] = attempt.rest;
  if (end.kind === "unreachable" && next !== undefined) return open(turned, { ...attempt, endpoint: next, rest });
  if (hasOtherKey && !attempt.isOtherKey) {
    return openFirst(turned, attempt.places, true) ?? afterFailure(turned, end, input);
  }
  return afterFailure(turned, end, input);
}

/** No endpoint has taken the agent in. */
function afterFailure(state: AgentState, end: SessionEnd, input: AgentInput): AgentStep {
  const { stage } = state;
  if (stage.kind === "connected" && stage.move !== null) return afterFailedMove(state, stage.move, end, input);
  const unreachable = end.kind === "unreachable" ? state.unreachable + 1 : 0;
  return afterEnd({ ...state, unreachable }, end, input);
}

function afterFailedMove(state: AgentState, move: Move, end: SessionEnd, input: AgentInput): AgentStep {
  const { next, state: counted } = decide(state, end, input);
  if (next.kind === "idle" || next.register === "must" || isDecision(end)) {
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
  return stay({ ...state, stage: { kind: "connected", move: beginMove(event, input) } });
}

function beginMove(
  asked: Pick<Extract<AgentEvent, { readonly kind: "move-asked" }>, "isOwnWish" | "endpoints" | "retryAfterMs">,
  { nowMs, random01 }: AgentInput,
): Move {
  const jitterMs = fullJitter({ attempt: 0, baseMs: MOVE_JITTER_MS, maxMs: MOVE_JITTER_MS, random01 });
  const { isOwnWish, endpoints: named, retryAfterMs } = asked;
  const step = { kind: "waiting", untilMs: nowMs + retryAfterMs + jitterMs } as const;
  return { isOwnWish, named, attempts: 0, step, over: null };
}

function onDue(state: AgentState, input: AgentInput): AgentStep {
  const atMs = dueAtMs(state);
  if (atMs === null || atMs > input.nowMs) return stay(state);
  const { stage, held } = state;
  if (stage.kind === "waiting") return beginAttempt(state, stage.register, input);
  if (stage.kind !== "connected" || stage.move === null || held === null) return stay(state);
  const { move } = stage;
  const named = move.attempts === 0 ? move.named : [];
  const places = move.isOwnWish ? [held.endpoint] : placesToMoveTo(held.endpoint, named, state.endpoints);
  return openFirst(state, inTurn(places, state.turn)) ?? afterFailedMove(state, move, NO_REPLICA, input);
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
function beginAttempt(state: AgentState, register: "no" | "try", input: AgentInput): AgentStep {
  const { mustRegister } = state;
  if (!mustRegister && register === "no") return beginOpening(state, input);
  return {
    state: { ...state, stage: { kind: "registering", isOptional: !mustRegister } },
    effects: [{ kind: "register" }],
  };
}

function beginOpening(state: AgentState, input: AgentInput): AgentStep {
  return openFirst(state, inTurn(state.endpoints, state.turn)) ?? afterFailure(state, NO_REPLICA, input);
}

/** Null when there is no place to open a stream at. */
function openFirst(state: AgentState, places: readonly string[], isOtherKey = false): AgentStep | null {
  const [endpoint, ...rest] = places;
  return endpoint === undefined ? null : open(state, { endpoint, rest, places, isOtherKey });
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
    unreachable: state.unreachable,
    hasConnected: state.hasConnected,
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
  const register = next.register === "try" ? "try" : "no";
  const mustRegister = state.mustRegister || next.register === "must";
  return {
    state: { ...state, mustRegister, stage: { kind: "waiting", untilMs: nowMs + next.delayMs, register } },
    effects: [log],
  };
}

const NO_REPLICA: SessionEnd = { kind: "unreachable", message: "no health replica is known" };

/** A Hello of this move may have taken the session although its Welcome was lost: no other process has the identity. */
function endOfMove(end: SessionEnd): SessionEnd {
  const isSuperseded = end.kind === "refused" && end.reason === "SESSION_SUPERSEDED";
  return isSuperseded ? { kind: "silent" } : end;
}

/**
 * Where to open the next stream: where the server says, else anywhere but here, else here: one address may stand for
 * many replicas.
 */
function placesToMoveTo(here: string, named: readonly string[], known: readonly string[]): readonly string[] {
  if (named.length > 0) return named;
  const others = known.filter((endpoint) => endpoint !== here);
  return others.length > 0 ? others : known;
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
