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
  type Question,
} from "./agent-state.ts";
import {
  asksAfterLoss,
  asksAfterNothingNew,
  asksForEndpoints,
  decideNextStep,
  endsRound,
  isDecision,
  isOfEndpoint,
  isRejection,
  type NextStep,
} from "./next-step.ts";

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
    case "registered":
      return onRegistered(state, event, input);
    case "not-registered":
      return onNotRegistered(state, event.end, input);
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

function onRegistered(
  state: AgentState,
  event: Extract<AgentEvent, { readonly kind: "registered" }>,
  input: AgentInput,
): AgentStep {
  const { stage } = state;
  if (stage.kind !== "registering") return stay(state);
  const { membership } = event;
  const endpoints = namedOrKnown(event.endpoints, state);
  const known = { ...state, membership, endpoints, mustRegister: false };
  const news = without(endpoints, [...state.endpoints, ...state.sentTo]);
  if (stage.question !== null && news.length === 0) return afterQuestion(known, stage.question, input);
  return beginOpening({ ...known, unreachable: 0 }, { news, hasAsked: true }, input);
}

function onNotRegistered(state: AgentState, end: SessionEnd, input: AgentInput): AgentStep {
  const { stage } = state;
  if (stage.kind !== "registering") return stay(state);
  const { question } = stage;
  if (question === null || endsRound(end)) return afterEnd(state, end, input);
  // A registry that is asked to wait for is left alone for as long, and no stream waits for it.
  const retryAfterMs = end.kind === "refused" ? (end.retryAfterMs ?? 0) : 0;
  return afterQuestion(state, question, input, retryAfterMs);
}

/** Go on where the agent was: the registry has named nothing new. */
function afterQuestion(state: AgentState, { end, next }: Question, input: AgentInput, retryAfterMs = 0): AgentStep {
  const asked = { ...state, asksAtMs: asksAfterNothingNew(input) + retryAfterMs };
  return next === null ? afterEnd(asked, end, input) : open(asked, { ...next, hasAsked: true });
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
      sentTo: endpoints.length > 0 ? [] : state.sentTo,
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
  const unreachable = isOfEndpoint(end) ? state.unreachable + 1 : 0;
  const turned = { ...state, turn: state.turn + 1, unreachable };
  const next = nextOf(attempt, end);
  if (!attempt.hasAsked && mayAsk(turned, end, next, input))
    return register(turned, { end: endOfRound(attempt, end), next });
  if (isOfEndpoint(end) && next !== null) return open(turned, next);
  if (hasOtherKey && !attempt.isOtherKey) {
    const [first = attempt.endpoint, ...others] = attempt.places;
    return open(turned, { ...attempt, endpoint: first, rest: others, isOtherKey: true });
  }
  return afterFailure(turned, endOfRound(attempt, end), input);
}

/** Null after the last endpoint of a round. */
function nextOf(attempt: Attempt, end: SessionEnd): Attempt | null {
  const [endpoint, ...rest] = attempt.rest;
  const ending = end.kind === "refused" ? end : attempt.ending;
  return endpoint === undefined ? null : { ...attempt, endpoint, rest, ending };
}

function endOfRound({ ending }: Attempt, last: SessionEnd): SessionEnd {
  return last.kind === "unreachable" ? (ending ?? last) : last;
}

/** Whether the registry may be asked now where the replicas are. */
function mayAsk(state: AgentState, end: SessionEnd, next: Attempt | null, { nowMs }: AgentInput): boolean {
  const isAway = state.held === null && isOfEndpoint(end);
  return isAway && nowMs >= state.asksAtMs && asksForEndpoints(state, next === null);
}

/** No endpoint has taken the agent in. */
function afterFailure(state: AgentState, end: SessionEnd, input: AgentInput): AgentStep {
  const { stage } = state;
  if (stage.kind === "connected" && stage.move !== null) return afterFailedMove(state, stage.move, end, input);
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
  const lost = { ...state, pace, turn: state.turn + 1, asksAtMs: asksAfterLoss(input) };
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
  if (stage.kind !== "connected") return stay(state);
  const { move } = stage;
  const { endpoints } = event;
  const known = endpoints.length > 0 ? { ...state, sentTo: endpoints } : state;
  if (move === null) return stay({ ...known, stage: { kind: "connected", move: beginMove(event, input) } });
  if (event.isOwnWish) return stay(state);
  // What is being opened goes on. The server's order is for a wish of the agent's own as well.
  const ordered = move.step.kind === "opening" ? { ...move, isOwnWish: false } : beginMove(event, input);
  return stay({ ...known, stage: { kind: "connected", move: { ...ordered, attempts: move.attempts } } });
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
  const { isOwnWish, attempts } = stage.move;
  const places = isOwnWish ? [held.endpoint] : placesToMoveTo(state, held.endpoint, attempts);
  const [endpoint = held.endpoint, ...rest] = places;
  return open(state, { endpoint, rest, places, isOtherKey: false, ending: null, hasAsked: false });
}

/**
 * Where the server says, then anywhere but here. Where no other endpoint is known, one address may stand for many
 * replicas: it is tried, too, once no replica has taken the agent where the server says.
 */
function placesToMoveTo({ endpoints, sentTo, turn }: AgentState, here: string, attempts: number): readonly string[] {
  const others = inTurn(without(endpoints, [here]), turn);
  const isHereToo = others.length === 0 && (attempts > 0 || sentTo.length === 0);
  return distinct([...sentTo, ...others, ...(isHereToo ? [here] : [])]);
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
  return state.mustRegister ? register(state, null) : beginOpening(state, { news: [], hasAsked: false }, input);
}

function register(state: AgentState, question: Question | null): AgentStep {
  return { state: { ...state, stage: { kind: "registering", question } }, effects: [{ kind: "register" }] };
}

/** @param round the endpoints to begin with, and whether the registry has just been asked. */
function beginOpening(
  state: AgentState,
  { news, hasAsked }: { readonly news: readonly string[]; readonly hasAsked: boolean },
  input: AgentInput,
): AgentStep {
  const { endpoints, sentTo, turn } = state;
  const places = distinct([...inTurn(news, turn), ...sentTo, ...inTurn(endpoints, turn)]);
  const [endpoint, ...rest] = places;
  if (endpoint !== undefined) return open(state, { endpoint, rest, places, isOtherKey: false, ending: null, hasAsked });
  if (!hasAsked && mayAsk(state, NO_REPLICA, null, input)) return register(state, { end: NO_REPLICA, next: null });
  return afterFailure(state, NO_REPLICA, input);
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

function without(endpoints: readonly string[], others: readonly string[]): readonly string[] {
  return endpoints.filter((endpoint) => !others.includes(endpoint));
}

function distinct(endpoints: readonly string[]): readonly string[] {
  return [...new Set(endpoints)];
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
