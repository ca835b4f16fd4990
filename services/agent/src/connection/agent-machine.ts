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
import {
  asksAfterLoss,
  asksAfterNothingNew,
  asksForEndpoints,
  decideNextStep,
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

/** More endpoints than this are not remembered. */
const MOST_ENDPOINTS = 64;

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

function onRegistered(
  state: AgentState,
  event: Extract<AgentEvent, { readonly kind: "registered" }>,
  input: AgentInput,
): AgentStep {
  const { stage, turn } = state;
  if (stage.kind !== "registering") return stay(state);
  const { membership } = event;
  const endpoints = namedOrKnown(event.endpoints, state);
  const known = { ...state, membership, endpoints, mustRegister: false };
  const news = endpoints.filter((endpoint) => !state.endpoints.includes(endpoint));
  if (news.length > 0) {
    const newFirst = preferring(inTurn(news, turn), endpoints);
    return beginOpening({ ...known, endpoints: newFirst, turn: 0, unreachable: 0 }, true, input);
  }
  if (stage.unanswered === null) return beginOpening(known, true, input);
  return afterEnd({ ...known, asksAtMs: asksAfterNothingNew(input) }, stage.unanswered, input);
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
  const unreachable = isOfEndpoint(end) ? state.unreachable + 1 : 0;
  const turned = { ...state, turn: state.turn + 1, unreachable };
  if (mayAsk(turned, end, attempt, input)) return register(turned, end);
  const [next, ...rest] = attempt.rest;
  if (isOfEndpoint(end) && next !== undefined) return open(turned, { ...attempt, endpoint: next, rest });
  if (hasOtherKey && !attempt.isOtherKey) {
    const [first = attempt.endpoint, ...others] = attempt.places;
    return open(turned, { ...attempt, endpoint: first, rest: others, isOtherKey: true });
  }
  return afterFailure(turned, end, input);
}

/** Whether the registry is asked now where the replicas are. */
function mayAsk(
  state: AgentState,
  end: SessionEnd,
  { rest, isFresh }: Pick<Attempt, "rest" | "isFresh">,
  { nowMs }: AgentInput,
): boolean {
  const isAway = state.held === null && isOfEndpoint(end);
  return isAway && !isFresh && nowMs >= state.asksAtMs && asksForEndpoints(state, rest.length === 0);
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
  const known = learnMove(state, event.endpoints);
  if (move === null) return stay({ ...known, stage: { kind: "connected", move: beginMove(event, input) } });
  if (event.isOwnWish) return stay(state);
  // What is being opened goes on. The server's order is for a wish of the agent's own as well.
  const ordered = move.step.kind === "opening" ? { ...move, isOwnWish: false } : beginMove(event, input);
  return stay({ ...known, stage: { kind: "connected", move: { ...ordered, attempts: move.attempts } } });
}

/** Where a server sends its agents comes first from now on, and the server itself last. */
function learnMove(state: AgentState, named: readonly string[]): AgentState {
  const { held } = state;
  if (named.length === 0 || held === null) return state;
  const endpoints = preferring(named, [...without(state.endpoints, held.endpoint), held.endpoint]);
  // The move begins with the first of the others, and so does the round after the loss of this session.
  return { ...state, endpoints, turn: endpoints.length - 1 };
}

function preferring(first: readonly string[], all: readonly string[]): readonly string[] {
  return [...new Set([...first, ...all])].slice(0, MOST_ENDPOINTS);
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
  const here = held.endpoint;
  const others = move.isOwnWish ? [] : inTurn(without(state.endpoints, here), state.turn);
  // One address may stand for many replicas: here is tried, too, once no other one took the agent.
  const isHereLast = others.length > 0 && move.attempts > 0;
  const [endpoint = here, ...rest] = isHereLast ? [...others, here] : others;
  return open(state, { endpoint, rest, places: [endpoint, ...rest], isOtherKey: false, isFresh: false });
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
  const places = inTurn(state.endpoints, state.turn);
  const [endpoint, ...rest] = places;
  if (endpoint !== undefined) return open(state, { endpoint, rest, places, isOtherKey: false, isFresh });
  if (mayAsk(state, NO_REPLICA, { rest, isFresh }, input)) return register(state, NO_REPLICA);
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

function without(endpoints: readonly string[], one: string): readonly string[] {
  return endpoints.filter((endpoint) => endpoint !== one);
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
