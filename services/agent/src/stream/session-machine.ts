import { GoAwayAction, type HeartbeatResponse, type Welcome } from "@rollcall/api/rollcall/health/v1/health_pb";
import { sameDigest } from "../info/node-info-keeper.ts";
import { hexOf } from "../work/desired-work.ts";
import { beginReports, type ReportEvent, reportDueMs, stepReports } from "../work/report-machine.ts";
import { type Pace, paceAfter, paceAfterAck, silentAtMs } from "./pace.ts";
import { endOfGoAway, endOfStatus, type SessionEnd } from "./session-end.ts";
import type {
  SessionEffect,
  SessionEvent,
  SessionNews,
  SessionPhase,
  SessionState,
  SessionStep,
} from "./session-state.ts";

/** How long to wait for the Challenge on a new connection. TCP would wait for minutes. */
export const CONNECT_TIMEOUT_MS = 5_000;

/**
 * How long to wait for the Welcome. A Welcome takes one transaction, which the server shares between agents when many
 * connect at once.
 */
export const WELCOME_TIMEOUT_MS = 20_000;

/**
 * How long before a beat to measure usage. This is late enough for current values, and early enough not to delay the
 * beat.
 */
const MEASURE_LEAD_MS = 1_000;

/** Time between two frames that carry the wall time. A clock drifts slowly and hardly ever jumps. */
const TELL_TIME_EVERY_MS = 60_000;

/** The maximum length of a goodbye's reason, in characters. */
const MOST_REASON = 1_024;

/** The initial state of a stream, while it connects. */
export function beginSession(options: {
  readonly pace: Pace;
  readonly infoCheckMs: number;
  readonly nowMs: number;
  /** Whether the node's executions are known; null if it runs no work. Default: null. */
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

/** When the next `due` event is expected; null for never. */
export function nextDueMs(state: SessionState): number | null {
  const { beatAtMs, measureAtMs, scanAtMs, patienceAtMs } = state;
  const times = [beatAtMs, measureAtMs, scanAtMs, patienceAtMs, reportAtMs(state)].filter((atMs) => atMs !== null);
  return times.length === 0 ? null : Math.min(...times);
}

/** Decide what an event does to a stream. A stream that has ended ignores all events. */
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
      // Do not read the machine again, because that takes seconds, and a problem there must not delay the report.
      return state.phase === "open" ? { state, effects: [READ_KNOWN] } : stay(state);
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

const NOTHING_DUE = { beatAtMs: null, measureAtMs: null, scanAtMs: null, patienceAtMs: null } as const;

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
    case "authorities":
      return { state, effects: [tell({ kind: "authorities", authorities: frame.value })] };
    // Ignore a frame from a newer server.
    case undefined:
      return stay(state);
  }
}

/** Executions can also change before the Welcome; the first report contains them all. */
function onWork(state: SessionState, event: ReportEvent, nowMs: number): SessionStep {
  if (state.reports === null) return stay(state);
  const isOpen = state.phase === "open";
  const { state: reports, effects } = stepReports(state.reports, event, nowMs);
  return isOpen
    ? { state: { ...state, reports }, effects }
    : stay({ ...state, reports: { ...reports, asked: new Map() } });
}

/** When the next report is due. No reports are sent unless the stream is open. */
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
    state: { ...first.state, scanAtMs: nextScanMs(first.state, nowMs) },
    effects: [
      ...(settings === undefined ? [] : [tell({ kind: "settings", settings })]),
      tell({ kind: "opened", welcome }),
      ...first.effects,
      ...(nodeInfoWanted ? [{ kind: "read-info", refresh: false, isWanted: true } as const] : []),
    ],
  };
}

function onAck(
  state: SessionState,
  ack: { readonly sequence: number; readonly nextIntervalMs: number },
  nowMs: number,
): SessionStep {
  // Keep waiting for an Ack of the last Beat: a late Ack only shows that the connection works.
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
  // Ignore the result if the session began to end while the machine was being read.
  if (state.phase !== "open") return stay(state);
  const isDue = nowMs >= state.infoSentAtMs + state.pace.infoMs;
  const isSent = isWanted || isDue || !sameDigest(digest, state.knownDigest);
  const sent = isSent ? { ...state, knownDigest: digest, infoSentAtMs: nowMs } : state;
  return {
    state: { ...sent, scanAtMs: nextScanMs(sent, nowMs) },
    effects: isSent ? [{ kind: "send-info", info }] : [],
  };
}

/** Do only the first action that is due. The shell repeats the call while something is due. */
function onDue(state: SessionState, nowMs: number): SessionStep {
  const dueMs = nextDueMs(state);
  if (dueMs === null || dueMs > nowMs) return stay(state);
  if (dueMs === state.patienceAtMs) return end(state, endOfPatience(state.phase));
  if (dueMs === state.measureAtMs) return { state: { ...state, measureAtMs: null }, effects: [{ kind: "measure" }] };
  if (dueMs === state.beatAtMs) return beat(state, nowMs);
  if (dueMs === reportAtMs(state)) return onWork(state, { kind: "due" }, nowMs);
  return { state: { ...state, scanAtMs: null }, effects: [READ_AGAIN] };
}

const READ_AGAIN = { kind: "read-info", refresh: true, isWanted: false } as const;
const READ_KNOWN = { kind: "read-info", refresh: false, isWanted: false } as const;

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

/** Decide whether the next frame carries the wall time, and remember it. */
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
  return pace.infoMs === infoMs ? scheduled : { ...scheduled, scanAtMs: nextScanMs(scheduled, nowMs) };
}

function nextScanMs({ infoSentAtMs, infoCheckMs, pace }: SessionState, nowMs: number): number {
  return Math.min(nowMs + infoCheckMs, Math.max(nowMs, infoSentAtMs + pace.infoMs));
}

/** When the connection counts as dead; null while every Beat is acknowledged. */
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
