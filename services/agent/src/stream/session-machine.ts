import {
  type Challenge,
  type Executions,
  type GoAway,
  GoAwayAction,
  type HeartbeatResponse,
  type LogRequest,
  type Settings,
  type SpecFrame,
  type Welcome,
} from "@rollcall/api/rollcall/health/v1/health_pb";
import type { Membership, NodeInfo } from "@rollcall/api/rollcall/node/v1/node_pb";
import { sameDigest } from "../info/node-info-keeper.ts";
import { hexOf } from "../work/desired-work.ts";
import {
  beginReports,
  type ReportEffect,
  type ReportEvent,
  type ReportState,
  reportDueMs,
  stepReports,
} from "../work/report-machine.ts";
import { type Pace, paceAfter, paceAfterAck, silentAtMs } from "./pace.ts";
import { endOfGoAway, endOfStatus, type SessionEnd } from "./session-end.ts";

/** A new connection that has not brought a Challenge after this is given up: TCP would wait for minutes. */
export const CONNECT_TIMEOUT_MS = 5_000;

/** A Welcome takes one transaction, shared with others when many agents come at once. */
export const WELCOME_TIMEOUT_MS = 20_000;

/** Measuring shortly before a beat makes what it sends fresh, and the beat does not wait for it. */
const MEASURE_LEAD_MS = 1_000;

/** A clock drifts slowly, and hardly ever jumps: frames tell the wall time once a minute. */
const TELL_TIME_EVERY_MS = 60_000;

/** How much of a goodbye's reason is sent, in characters. */
const MOST_REASON = 1_024;

/** How far a stream has come. */
export type SessionPhase = "connecting" | "greeting" | "open" | "leaving" | "ended";

/** One heartbeat stream on the agent's side. Points in time are of the monotonic clock. */
export interface SessionState {
  readonly phase: SessionPhase;
  /** The intervals in force. */
  readonly pace: Pace;
  /** Sequence of the last Beat; 0 before the first. */
  readonly sequence: number;
  readonly lastBeatAtMs: number;
  readonly lastAckAtMs: number;
  /** When the oldest Beat without an answer was sent; null when all are answered. */
  readonly unansweredSinceMs: number | null;
  /** Generation of the settings that are kept to. */
  readonly settingsGeneration: number;
  /** Generation that the server knows to be kept to. */
  readonly toldGeneration: number;
  /** When a frame last carried the wall time. */
  readonly timeToldAtMs: number;
  /** Digest of the NodeInfo that the server has, or was told that it could ask for. */
  readonly knownDigest: Uint8Array;
  readonly infoSentAtMs: number;
  /** The longest time between two looks at whether the machine has changed. */
  readonly infoCheckMs: number;
  /** When the next Beat, measurement and look at the machine are due, and when patience ends; null for never. */
  readonly beatAtMs: number | null;
  readonly measureAtMs: number | null;
  readonly lookAtMs: number | null;
  readonly patienceAtMs: number | null;
  /** What was told of executions, from the Welcome on; null on a node that runs no work. */
  readonly reports: ReportState | null;
}

/** What happens to a stream. */
export type SessionEvent =
  | { readonly kind: "frame"; readonly frame: HeartbeatResponse["frame"] }
  /** The digest that a Hello carries was read; empty when the machine took too long. */
  | { readonly kind: "described"; readonly challenge: Challenge; readonly digest: Uint8Array }
  /** The machine was read; `isWanted` when the server asked for the whole. */
  | { readonly kind: "info-read"; readonly info: NodeInfo; readonly digest: Uint8Array; readonly isWanted: boolean }
  /** The time that nextDueMs() named has come. */
  | { readonly kind: "due" }
  /** The transport ended; `error` is undefined for an end in good order. */
  | { readonly kind: "stream-ended"; readonly error: unknown }
  /** The machine's executions are known, or some of these have changed; or specs are missing. */
  | { readonly kind: "work-changed"; readonly ids: readonly string[]; readonly wantedSpecs: readonly string[] }
  /** What the node is has changed: look at it now. */
  | { readonly kind: "look" }
  /** Say goodbye, and leave after `limitMs` at the latest. `leavesWork`: executions go on, and the agent will be back. */
  | { readonly kind: "goodbye"; readonly reason: string; readonly limitMs: number; readonly leavesWork: boolean }
  /** Leave at once, without a goodbye. */
  | { readonly kind: "drop" };

/** What the shell of a session carries out, in order. */
export type SessionEffect =
  /** Measure usage, so that the next Beat has something fresh. */
  | { readonly kind: "measure" }
  /** Read the digest for a Hello in time, then answer `described`. */
  | { readonly kind: "describe"; readonly challenge: Challenge }
  /** Read the machine, again where `refresh` is set, then answer `info-read`. */
  | { readonly kind: "read-info"; readonly refresh: boolean }
  | {
      readonly kind: "send-hello";
      readonly challenge: Challenge;
      readonly digest: Uint8Array;
      readonly tellsTime: boolean;
    }
  | {
      readonly kind: "send-beat";
      readonly sequence: number;
      /** Settings that the server does not know to be kept to; else 0, which is not sent. */
      readonly settingsGeneration: number;
      readonly intervalMs: number;
      readonly tellsTime: boolean;
    }
  | { readonly kind: "send-info"; readonly info: NodeInfo }
  | ReportEffect
  /** Send a Goodbye, after which no frame follows. */
  | { readonly kind: "send-goodbye"; readonly reason: string; readonly leavesWork: boolean }
  /** Let go of the connection. */
  | { readonly kind: "cancel" }
  | { readonly kind: "tell"; readonly news: SessionNews };

/** What a session reports to its owner. */
export type SessionNews =
  | { readonly kind: "opened"; readonly welcome: Welcome }
  | { readonly kind: "membership"; readonly membership: Membership }
  /** What to keep to, as a Welcome says first and the server whenever it changes. */
  | { readonly kind: "settings"; readonly settings: Settings }
  | { readonly kind: "acked" }
  /** What should run on the node. */
  | { readonly kind: "executions"; readonly executions: Executions }
  /** A spec that was asked for. */
  | { readonly kind: "spec"; readonly spec: SpecFrame }
  /** All reports up to this one are in the record. */
  | { readonly kind: "report-acked"; readonly number: number }
  /** Output of an execution is read: open the call that brings it. */
  | { readonly kind: "log-request"; readonly request: LogRequest }
  /** The server asks to open another stream, and to leave this one after its Welcome. */
  | { readonly kind: "move-asked"; readonly goAway: GoAway }
  | { readonly kind: "ended"; readonly end: SessionEnd };

/** A state, and what has to be done to get there. */
export interface SessionStep {
  readonly state: SessionState;
  readonly effects: readonly SessionEffect[];
}

/** A stream that begins to connect. */
export function beginSession(options: {
  readonly pace: Pace;
  readonly infoCheckMs: number;
  readonly nowMs: number;
  /** Whether the node runs work, and whether its executions are known. Default: it runs none. */
  readonly work?: { readonly isKnown: boolean } | null;
}): SessionState {
  const { pace, infoCheckMs, nowMs, work = null } = options;
  return {
    phase: "connecting",
    pace,
    sequence: 0,
    lastBeatAtMs: 0,
    lastAckAtMs: 0,
    unansweredSinceMs: null,
    settingsGeneration: 0,
    toldGeneration: 0,
    timeToldAtMs: Number.NEGATIVE_INFINITY,
    knownDigest: new Uint8Array(),
    infoSentAtMs: 0,
    infoCheckMs,
    ...NOTHING_DUE,
    patienceAtMs: nowMs + CONNECT_TIMEOUT_MS,
    reports: work === null ? null : beginReports(work.isKnown, nowMs),
  };
}

/** When the next `due` event is to come; null for never. */
export function nextDueMs(state: SessionState): number | null {
  const { beatAtMs, measureAtMs, lookAtMs, patienceAtMs } = state;
  const times = [beatAtMs, measureAtMs, lookAtMs, patienceAtMs, reportAtMs(state)].filter((atMs) => atMs !== null);
  return times.length === 0 ? null : Math.min(...times);
}

/** Decide what an event does to a stream. An ended stream ignores all. */
export function stepSession(state: SessionState, event: SessionEvent, nowMs: number): SessionStep {
  if (state.phase === "ended") return stay(state);
  switch (event.kind) {
    case "frame":
      return onFrame(state, event.frame, nowMs);
    case "described": {
      if (state.phase !== "greeting") return stay(state);
      const { challenge, digest } = event;
      const [told, tellsTime] = tellTime(state, nowMs);
      return {
        state: { ...told, knownDigest: digest },
        effects: [{ kind: "send-hello", challenge, digest, tellsTime }],
      };
    }
    case "info-read":
      return onInfoRead(state, event, nowMs);
    case "due":
      return onDue(state, nowMs);
    case "stream-ended":
      return end(state, endOfStatus(event.error, state.phase !== "connecting"));
    case "work-changed":
      return onWork(state, { ...event, kind: "changed" }, nowMs);
    case "look":
      return stay(state.phase === "open" && state.lookAtMs !== null ? { ...state, lookAtMs: nowMs } : state);
    case "goodbye":
      if (state.phase !== "open") return end(state, { kind: "left" });
      return {
        state: { ...state, ...NOTHING_DUE, phase: "leaving", patienceAtMs: nowMs + event.limitMs },
        effects: [{ kind: "send-goodbye", reason: event.reason.slice(0, MOST_REASON), leavesWork: event.leavesWork }],
      };
    case "drop":
      return end(state, { kind: "left" });
  }
}

const NOTHING_DUE = { beatAtMs: null, measureAtMs: null, lookAtMs: null, patienceAtMs: null } as const;

function onFrame(state: SessionState, frame: HeartbeatResponse["frame"], nowMs: number): SessionStep {
  switch (frame.case) {
    case "challenge":
      if (state.phase !== "connecting") return stay(state);
      return {
        state: { ...state, phase: "greeting", patienceAtMs: nowMs + WELCOME_TIMEOUT_MS },
        effects: [{ kind: "measure" }, { kind: "describe", challenge: frame.value }],
      };
    case "welcome":
      return state.phase === "greeting" ? onWelcome(state, frame.value, nowMs) : stay(state);
    case "ack":
      return state.phase === "open" ? onAck(state, frame.value, nowMs) : stay(state);
    case "settings": {
      const { value: settings } = frame;
      const known = { ...state, settingsGeneration: settings.generation };
      return {
        state: keepPace(known, paceAfter(state.pace, settings), nowMs),
        effects: [tell({ kind: "settings", settings })],
      };
    }
    case "membership":
      return { state, effects: [tell({ kind: "membership", membership: frame.value })] };
    case "goAway": {
      const { value: goAway } = frame;
      if (goAway.action !== GoAwayAction.MOVE || state.phase !== "open") return end(state, endOfGoAway(goAway));
      return { state, effects: [tell({ kind: "move-asked", goAway })] };
    }
    case "executions": {
      const { value: executions } = frame;
      const asked = executions.reportWanted ? onWork(state, { kind: "asked" }, nowMs) : stay(state);
      return withNews(asked, { kind: "executions", executions });
    }
    case "spec":
      return withNews(onWork(state, { kind: "spec", digest: hexOf(frame.value.digest) }, nowMs), {
        kind: "spec",
        spec: frame.value,
      });
    case "reportAck": {
      const number = Number(frame.value.number);
      return withNews(onWork(state, { kind: "acked", number }, nowMs), { kind: "report-acked", number });
    }
    case "logRequest":
      if (state.phase !== "open" || state.reports === null) return stay(state);
      return { state, effects: [tell({ kind: "log-request", request: frame.value })] };
    // A frame of a newer server.
    case undefined:
      return stay(state);
  }
}

/** Before the Welcome executions may change as well, and the first report has them all. */
function onWork(state: SessionState, event: ReportEvent, nowMs: number): SessionStep {
  if (state.reports === null) return stay(state);
  const isOpen = state.phase === "open";
  const { state: reports, effects } = stepReports(state.reports, event, nowMs);
  return isOpen
    ? { state: { ...state, reports }, effects }
    : stay({ ...state, reports: { ...reports, asked: new Map() } });
}

/** Only while the stream is open. */
function reportAtMs({ phase, reports }: SessionState): number | null {
  return phase === "open" && reports !== null ? reportDueMs(reports) : null;
}

function onWelcome(state: SessionState, welcome: Welcome, nowMs: number): SessionStep {
  const { settings, nodeInfoWanted } = welcome;
  const open: SessionState = {
    ...state,
    phase: "open",
    pace: paceAfter(state.pace, settings),
    settingsGeneration: settings?.generation ?? 0,
    lastAckAtMs: nowMs,
    infoSentAtMs: nowMs,
    patienceAtMs: null,
  };
  const first = beat(open, nowMs);
  return {
    state: { ...first.state, lookAtMs: nextLookMs(first.state, nowMs) },
    effects: [
      ...(settings === undefined ? [] : [tell({ kind: "settings", settings })]),
      tell({ kind: "opened", welcome }),
      ...first.effects,
      ...(nodeInfoWanted ? [{ kind: "read-info", refresh: false } as const] : []),
    ],
  };
}

function onAck(
  state: SessionState,
  ack: { readonly sequence: number; readonly nextIntervalMs: number },
  nowMs: number,
): SessionStep {
  // A late Ack shows that the path lives, and leaves the last Beat unanswered.
  const unansweredSinceMs = ack.sequence >= state.sequence ? null : state.lastBeatAtMs;
  const heard = { ...state, lastAckAtMs: nowMs, unansweredSinceMs };
  const paced = keepPace(heard, paceAfterAck(state.pace, ack.nextIntervalMs), nowMs);
  return { state: { ...paced, patienceAtMs: patienceOf(paced) }, effects: [tell({ kind: "acked" })] };
}

function onInfoRead(
  state: SessionState,
  { info, digest, isWanted }: Extract<SessionEvent, { readonly kind: "info-read" }>,
  nowMs: number,
): SessionStep {
  // The session may have begun to end while the machine was read.
  if (state.phase !== "open") return stay(state);
  const isDue = nowMs >= state.infoSentAtMs + state.pace.infoMs;
  const isSent = isWanted || isDue || !sameDigest(digest, state.knownDigest);
  const sent = isSent ? { ...state, knownDigest: digest, infoSentAtMs: nowMs } : state;
  return {
    state: { ...sent, lookAtMs: nextLookMs(sent, nowMs) },
    effects: isSent ? [{ kind: "send-info", info }] : [],
  };
}

/** Do the one thing that is due first; the shell asks again while something is. */
function onDue(state: SessionState, nowMs: number): SessionStep {
  const dueMs = nextDueMs(state);
  if (dueMs === null || dueMs > nowMs) return stay(state);
  if (dueMs === state.patienceAtMs) return end(state, endOfPatience(state.phase));
  if (dueMs === state.measureAtMs) return { state: { ...state, measureAtMs: null }, effects: [{ kind: "measure" }] };
  if (dueMs === state.beatAtMs) return beat(state, nowMs);
  if (dueMs === reportAtMs(state)) return onWork(state, { kind: "due" }, nowMs);
  return { state: { ...state, lookAtMs: null }, effects: [{ kind: "read-info", refresh: true }] };
}

function endOfPatience(phase: SessionPhase): SessionEnd {
  switch (phase) {
    case "connecting":
      return { kind: "unreachable", message: `no answer within ${CONNECT_TIMEOUT_MS} ms` };
    case "greeting":
    case "open":
      return { kind: "silent" };
    case "leaving":
    case "ended":
      return { kind: "left" };
  }
}

function beat(state: SessionState, nowMs: number): SessionStep {
  const [told, tellsTime] = tellTime(state, nowMs);
  const { sequence, settingsGeneration, toldGeneration, unansweredSinceMs, pace } = told;
  const sent: SessionState = {
    ...told,
    sequence: sequence + 1,
    lastBeatAtMs: nowMs,
    unansweredSinceMs: unansweredSinceMs ?? nowMs,
    toldGeneration: settingsGeneration,
  };
  return {
    state: { ...schedule(sent, nowMs), patienceAtMs: patienceOf(sent) },
    effects: [
      {
        kind: "send-beat",
        sequence: sequence + 1,
        settingsGeneration: settingsGeneration === toldGeneration ? 0 : settingsGeneration,
        intervalMs: pace.heartbeatMs,
        tellsTime,
      },
    ],
  };
}

/** Whether the frame that is being made tells the wall time. */
function tellTime(state: SessionState, nowMs: number): readonly [SessionState, boolean] {
  const tellsTime = nowMs - state.timeToldAtMs >= TELL_TIME_EVERY_MS;
  return [tellsTime ? { ...state, timeToldAtMs: nowMs } : state, tellsTime];
}

function schedule(state: SessionState, nowMs: number): SessionState {
  const beatAtMs = Math.max(nowMs, state.lastBeatAtMs + state.pace.heartbeatMs);
  return { ...state, beatAtMs, measureAtMs: beatAtMs - Math.min(MEASURE_LEAD_MS, (beatAtMs - nowMs) / 2) };
}

function keepPace(state: SessionState, pace: Pace, nowMs: number): SessionState {
  const { heartbeatMs, infoMs } = state.pace;
  const paced = { ...state, pace };
  if (state.phase !== "open") return paced;
  const scheduled = pace.heartbeatMs === heartbeatMs ? paced : schedule(paced, nowMs);
  return pace.infoMs === infoMs ? scheduled : { ...scheduled, lookAtMs: nextLookMs(scheduled, nowMs) };
}

function nextLookMs({ infoSentAtMs, infoCheckMs, pace }: SessionState, nowMs: number): number {
  return Math.min(nowMs + infoCheckMs, Math.max(nowMs, infoSentAtMs + pace.infoMs));
}

/** When the path counts as dead; null while every Beat is answered. */
function patienceOf({ pace, lastAckAtMs, unansweredSinceMs }: SessionState): number | null {
  return unansweredSinceMs === null ? null : silentAtMs(pace, lastAckAtMs, unansweredSinceMs);
}

function end(state: SessionState, why: SessionEnd): SessionStep {
  return {
    state: { ...state, ...NOTHING_DUE, phase: "ended" },
    effects: [{ kind: "cancel" }, tell({ kind: "ended", end: why })],
  };
}

function stay(state: SessionState): SessionStep {
  return { state, effects: [] };
}

function withNews({ state, effects }: SessionStep, news: SessionNews): SessionStep {
  if (state.reports === null || state.phase !== "open") return { state, effects };
  return { state, effects: [tell(news), ...effects] };
}

function tell(news: SessionNews): SessionEffect {
  return { kind: "tell", news };
}
