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

/** The time limit for delivering a goodbye. */
export const GOODBYE_LIMIT_MS = 5_000;

/**
 * Minimum duration of a steady session. Shorter sessions count as consecutive failures, so that agents do not
 * reconnect in a tight loop to a server that welcomes them and then ends their streams.
 */
const STEADY_AFTER_MS = 10_000;

/**
 * Maximum delay of a move. Each delay is random, so that the agents of one replica do not all move at the same time.
 */
const MOVE_JITTER_MS = 1_000;

/** Decide what an event does to an agent. Events that arrive too late for the current stage change nothing. */
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
  if (stage.question === null) return beginOpening({ ...known, unreachable: 0 }, true, input);
  const news = without(endpoints, [...state.endpoints, ...state.sentTo]);
  const asked =
    news.length > 0 ? { ...known, unreachable: 0 } : { ...known, asksAtMs: asksAfterNothingNew(state, input) };
  return goOn(asked, stage.question, news, input);
}

function onNotRegistered(state: AgentState, end: SessionEnd, input: AgentInput): AgentStep {
  const { stage } = state;
  if (stage.kind !== "registering") return stay(state);
  const { question } = stage;
  if (question === null) return afterEnd(state, end, input);
  const asked = { ...state, asksAtMs: asksAfterNothingNew(state, input) + retryAfterMsOf(end) };
  return endsRound(end) ? afterEnd(asked, end, input) : goOn(asked, question, [], input);
}

/** Continue the round after asking the registry, starting with the new endpoints. */
function goOn(state: AgentState, question: Question, news: readonly string[], input: AgentInput): AgentStep {
  const { end, isOtherKey, notBeforeMs } = question;
  const places = distinct([...inTurn(news, state.turn), ...question.rest]);
  const [endpoint, ...rest] = places;
  if (endpoint === undefined) return afterEnd(state, end, input, notBeforeMs);
  return open(state, { endpoint, rest, places, isOtherKey, notBeforeMs, hasAsked: true });
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
  // While this stream was being opened, a request to use the new key arrived and was ignored, so repeat it now.
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

/**
 * A control plane without health replicas returns no endpoints. In that case, keep the previous ones as the best
 * guess.
 */
function namedOrKnown(named: readonly string[], { endpoints }: AgentState): readonly string[] {
  return named.length > 0 ? named : endpoints;
}

function onNotOpened(
  state: AgentState,
  { end, hasOtherKey }: Extract<AgentEvent, { readonly kind: "not-opened" }>,
  input: AgentInput,
): AgentStep {
  const begun = attemptOf(state);
  if (begun === null) return stay(state);
  const isGone = isOfEndpoint(end);
  const notBeforeMs = isGone ? Math.max(begun.notBeforeMs, input.nowMs + retryAfterMsOf(end)) : begun.notBeforeMs;
  const attempt = { ...begun, notBeforeMs };
  const unreachable = isGone ? state.unreachable + 1 : 0;
  const turned = { ...state, turn: state.turn + 1, unreachable };
  const { hasAsked, isOtherKey } = attempt;
  const [next, ...others] = attempt.rest;
  if (isGone && !hasAsked && mayAsk(turned, next === undefined, input)) {
    return register(turned, { end, rest: attempt.rest, isOtherKey, notBeforeMs });
  }
  if (isGone && next !== undefined) return open(turned, { ...attempt, endpoint: next, rest: others });
  if (hasOtherKey && !isOtherKey) {
    const [first = attempt.endpoint, ...rest] = attempt.places;
    return open(turned, { ...attempt, endpoint: first, rest, isOtherKey: true });
  }
  const { stage } = turned;
  if (stage.kind !== "connected" || stage.move === null) return afterEnd(turned, end, input, notBeforeMs);
  return afterFailedMove(turned, { ...stage.move, notBeforeMs }, end, input);
}

function retryAfterMsOf(end: SessionEnd): number {
  return end.kind === "refused" ? (end.retryAfterMs ?? 0) : 0;
}

/** Whether the registry can be asked for endpoints now. */
function mayAsk(state: AgentState, isRoundOver: boolean, { nowMs }: AgentInput): boolean {
  return state.held === null && nowMs >= state.asksAtMs && asksForEndpoints(state, isRoundOver);
}

function afterFailedMove(
  state: AgentState,
  { notBeforeMs, ...move }: Move & Pick<Attempt, "notBeforeMs">,
  end: SessionEnd,
  input: AgentInput,
): AgentStep {
  const { next, state: counted } = decide(state, end, input);
  if (next.kind === "idle" || next.mustRegister || isDecision(end)) {
    const drop: readonly AgentEffect[] = move.over === null ? [{ kind: "drop" }] : [];
    return prepend(drop, follow({ ...counted, held: null }, end, next, input));
  }
  if (move.over !== null) return afterEnd({ ...counted, held: null }, endOfMove(move.over), input, notBeforeMs);
  const step = { kind: "waiting", untilMs: Math.max(notBeforeMs, input.nowMs + next.delayMs) } as const;
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
  const lost = { ...state, pace, turn: state.turn + 1, asksAtMs: Math.max(state.asksAtMs, asksAfterLoss(input)) };
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
  const known = event.isOwnWish ? state : { ...state, sentTo: event.endpoints };
  if (move === null) return stay({ ...known, stage: { kind: "connected", move: beginMove(event, input) } });
  if (event.isOwnWish) return stay(state);
  // Let an opening in progress continue. The server's request to move replaces the agent's own request.
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
  const places = isOwnWish ? [held.endpoint] : replicasToMoveTo(state, held.endpoint, attempts);
  const [endpoint = held.endpoint, ...rest] = places;
  return open(state, { endpoint, rest, places, isOtherKey: false, notBeforeMs: 0, hasAsked: false });
}

/**
 * The endpoints to try for a move: first those that the server named, then all other known ones. The current address is
 * added only if no other endpoint is known, and the server named none or the named ones have failed: one address may
 * stand for many replicas.
 */
function replicasToMoveTo({ endpoints, sentTo, turn }: AgentState, here: string, attempts: number): readonly string[] {
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
  // Send the goodbye on the current stream.
  return {
    state: { ...state, stage: { kind: "closing" } },
    effects: [giveUp, { kind: "goodbye", reason, limitMs: GOODBYE_LIMIT_MS }],
  };
}

function closed(state: AgentState): AgentState {
  return { ...state, stage: { kind: "closed" }, held: null };
}

/** Register if required, then open a stream. */
function beginAttempt(state: AgentState, input: AgentInput): AgentStep {
  return state.mustRegister ? register(state, null) : beginOpening(state, false, input);
}

function register(state: AgentState, question: Question | null): AgentStep {
  return { state: { ...state, stage: { kind: "registering", question } }, effects: [{ kind: "register" }] };
}

/** @param hasAsked whether the registry has just returned the endpoints. */
function beginOpening(state: AgentState, hasAsked: boolean, input: AgentInput): AgentStep {
  const places = distinct([...state.sentTo, ...inTurn(state.endpoints, state.turn)]);
  const [endpoint, ...rest] = places;
  const round = { rest, isOtherKey: false, notBeforeMs: 0 };
  if (endpoint !== undefined) return open(state, { ...round, endpoint, places, hasAsked });
  if (!hasAsked && mayAsk(state, true, input)) return register(state, { ...round, end: NO_REPLICA });
  return afterEnd(state, NO_REPLICA, input);
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

/** The attempt in progress; null if there is none. */
function attemptOf({ stage }: AgentState): Attempt | null {
  if (stage.kind === "opening") return stage.attempt;
  if (stage.kind === "connected" && stage.move?.step.kind === "opening") return stage.move.step.attempt;
  return null;
}

function afterEnd(state: AgentState, end: SessionEnd, input: AgentInput, notBeforeMs = 0): AgentStep {
  const { next, state: counted } = decide(state, end, input);
  if (next.kind === "idle") return follow(counted, end, next, input);
  return follow(counted, end, { ...next, delayMs: Math.max(next.delayMs, notBeforeMs - input.nowMs) }, input);
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

/**
 * Convert the end of the old stream during a move. If the move's Hello took over the session and its Welcome was lost,
 * the old stream ends as superseded. In that case, no other process has the node's identity, so treat the old stream
 * as silent.
 */
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
