import type {
  EndCause,
  ExecutionEffect,
  ExecutionEvent,
  ExecutionInput,
  ExecutionState,
  Exit,
  KeepingRules,
  Phase,
  StopCause,
} from "./execution-state.ts";

/** A state, and what has to be done to get there. */
export interface ExecutionStep {
  readonly state: ExecutionState;
  readonly effects: readonly ExecutionEffect[];
}

type RunningPhase = Extract<Phase, { readonly kind: "running" }>;

/** What did not end by SIGKILL within this is killed again: the signal waits while the kernel waits for a disk. */
const KILL_AGAIN_MS = 5_000;

/** A check is first tried soon after the start, and not at once, when hardly any program listens. */
const FIRST_CHECK_MS = 500;

const MOST_MESSAGE = 512;

/** An execution whose process is about to be started. */
export function beginExecution(rules: KeepingRules): ExecutionState {
  return { rules, phase: { kind: "starting", stop: null }, change: 1, startedWallMs: null, message: "" };
}

/** How an execution ends that the keeper has not started, or of which it knows nothing. */
export interface NeverStarted {
  readonly cause: Extract<EndCause, "STOPPED" | "START_FAILED" | "GONE">;
  readonly message: string;
}

/** An execution that ends before it was started. */
export function neverStarted(rules: KeepingRules, end: NeverStarted, wallMs: number): ExecutionState {
  return ended(beginExecution(rules), { ...end, code: null, signal: null }, wallMs);
}

/** When the next `due` event is to come; null for never. */
export function dueAtMs({ phase, rules }: ExecutionState, seenAtMs: number): number | null {
  switch (phase.kind) {
    case "starting":
    case "ended":
      return null;
    case "stopping":
      return phase.killAtMs;
    case "running": {
      const times = [
        phase.checkAtMs,
        lostAtMs(rules, seenAtMs),
        deadlineAtMs(rules, phase.sinceMs),
        readyUntilMs(rules, phase),
      ];
      const set = times.filter((atMs) => atMs !== null);
      return set.length === 0 ? null : Math.min(...set);
    }
  }
}

/** Decide what an event does to an execution. One that has ended ignores all. */
export function stepExecution(state: ExecutionState, event: ExecutionEvent, input: ExecutionInput): ExecutionStep {
  const { phase } = state;
  switch (event.kind) {
    case "progress": {
      if (phase.kind !== "starting" || state.message === event.message) return stay(state);
      return { state: changed({ ...state, message: cut(event.message) }), effects: [{ kind: "save" }] };
    }
    case "launched":
      return phase.kind === "starting"
        ? onLaunched({ ...state, message: "", about: cut(event.about) }, phase.stop, input)
        : stay(state);
    case "launch-failed": {
      if (phase.kind !== "starting") return stay(state);
      const cause = phase.stop ?? "START_FAILED";
      const end = { cause, message: event.message, code: null, signal: null } as const;
      return { state: ended(state, end, input.wallMs), effects: [{ kind: "kill" }, { kind: "save" }] };
    }
    case "stop":
      if (phase.kind === "starting") {
        if (phase.stop !== null) return stay(state);
        return { state: { ...state, phase: { ...phase, stop: "STOPPED" } }, effects: [{ kind: "save" }] };
      }
      return phase.kind === "running" ? stop(state, phase, "STOPPED", input) : stay(state);
    case "exited":
      return phase.kind === "ended" ? stay(state) : onExited(state, phase, event.exit, input);
    case "checked":
      return phase.kind === "running" ? onChecked(state, phase, event, input) : stay(state);
    case "unchecked":
      return phase.kind === "running" ? onUnchecked(state, phase, event, input) : stay(state);
    case "due":
      return onDue(state, phase, input);
  }
}

function onLaunched(state: ExecutionState, asked: StopCause | null, input: ExecutionInput): ExecutionStep {
  const { check } = state.rules;
  const phase: RunningPhase = {
    kind: "running",
    sinceMs: input.nowMs,
    isReady: check === null,
    wasReady: check === null,
    failures: 0,
    checkAtMs: check === null ? null : input.nowMs + Math.min(FIRST_CHECK_MS, check.intervalMs),
  };
  const running = changed({ ...state, phase, startedWallMs: input.wallMs });
  return asked === null ? { state: running, effects: [{ kind: "save" }] } : stop(running, phase, asked, input);
}

function onUnchecked(
  state: ExecutionState,
  phase: RunningPhase,
  { message }: Extract<ExecutionEvent, { readonly kind: "unchecked" }>,
  { nowMs }: ExecutionInput,
): ExecutionStep {
  const { check } = state.rules;
  if (check === null) return stay(state);
  const next = { ...state, phase: { ...phase, checkAtMs: nowMs + check.intervalMs } };
  const told = cut(`check: ${message}`);
  // A ready one stays ready, and what is said of it stays true.
  if (phase.isReady || state.message === told) return stay(next);
  return { state: changed({ ...next, message: told }), effects: [{ kind: "save" }] };
}

function onChecked(
  state: ExecutionState,
  phase: RunningPhase,
  { passed, message }: Extract<ExecutionEvent, { readonly kind: "checked" }>,
  input: ExecutionInput,
): ExecutionStep {
  const { check } = state.rules;
  if (check === null) return stay(state);
  const checkAtMs = input.nowMs + check.intervalMs;
  if (passed) {
    const ready = { ...phase, isReady: true, wasReady: true, failures: 0, checkAtMs };
    if (phase.isReady) return stay({ ...state, phase: ready });
    return { state: changed({ ...state, phase: ready, message: "" }), effects: [{ kind: "save" }] };
  }
  const failures = phase.failures + 1;
  const failed = { ...phase, failures, checkAtMs };
  const told = { ...state, message: cut(`check failed ${failures} times in a row: ${message}`) };
  // Reported once, and not with each try. What ends it at its deadline says the last one.
  if (!phase.wasReady && failures !== check.failures) return stay({ ...told, phase: failed });
  if (failures < check.failures || (phase.wasReady && !phase.isReady)) return stay({ ...state, phase: failed });
  return { state: changed({ ...told, phase: { ...failed, isReady: false } }), effects: [{ kind: "save" }] };
}

function onDue(state: ExecutionState, phase: Phase, input: ExecutionInput): ExecutionStep {
  const { nowMs, seenAtMs } = input;
  const { rules } = state;
  const isDue = (atMs: number | null): boolean => atMs !== null && atMs <= nowMs;
  switch (phase.kind) {
    case "starting":
    case "ended":
      return stay(state);
    case "stopping": {
      if (!isDue(phase.killAtMs)) return stay(state);
      const again = { ...phase, killAtMs: nowMs + KILL_AGAIN_MS, isKilled: true };
      const effects: readonly ExecutionEffect[] = [{ kind: "kill" }];
      return { state: { ...state, phase: again }, effects: phase.isKilled ? effects : [...effects, { kind: "save" }] };
    }
    case "running":
      if (isDue(deadlineAtMs(rules, phase.sinceMs))) return stop(state, phase, "DEADLINE_EXCEEDED", input);
      if (isDue(lostAtMs(rules, seenAtMs))) return stop(state, phase, "CONTROL_PLANE_LOST", input);
      if (isDue(readyUntilMs(rules, phase))) return stop(neverReady(state), phase, "CHECK_FAILED", input);
      if (isDue(phase.checkAtMs)) {
        return { state: { ...state, phase: { ...phase, checkAtMs: null } }, effects: [{ kind: "check" }] };
      }
      return stay(state);
  }
}

function stop(
  state: ExecutionState,
  { wasReady }: { readonly wasReady: boolean },
  cause: StopCause,
  { nowMs }: ExecutionInput,
): ExecutionStep {
  const { stopSignal, graceMs } = state.rules;
  const killAtMs = nowMs + graceMs;
  return {
    state: { ...state, phase: { kind: "stopping", cause, killAtMs, isKilled: false, wasReady } },
    // Saved first: a keeper that is killed in between signals again, instead of taking the end for its own.
    effects: [{ kind: "save" }, { kind: "signal", signal: stopSignal }],
  };
}

function onExited(
  state: ExecutionState,
  phase: Exclude<Phase, { readonly kind: "ended" }>,
  exit: Exit | null,
  { wallMs }: ExecutionInput,
): ExecutionStep {
  const { code, signal } = exit ?? { code: null, signal: null };
  const { cause, message } = causeOf(state, phase, exit);
  // What the process left behind goes with it.
  return {
    state: ended(state, { cause, message, code, signal }, wallMs),
    effects: [{ kind: "kill" }, { kind: "save" }],
  };
}

function causeOf(
  state: ExecutionState,
  phase: Exclude<Phase, { readonly kind: "ended" }>,
  exit: Exit | null,
): { readonly cause: EndCause; readonly message: string } {
  const { message } = state;
  if (phase.kind === "stopping") return { cause: phase.cause, message };
  if (phase.kind === "starting" && phase.stop !== null) return { cause: phase.stop, message };
  if (exit === null) return { cause: "GONE", message: "the process was gone, and how it ended was not seen" };
  // What its check said last is not why it ended.
  const { code, memoryKill } = exit;
  if (code === 0 || memoryKill.kind === "no") return { cause: "EXITED", message: "" };
  if (memoryKill.kind === "yes") return { cause: "OOM", message: "" };
  return { cause: "EXITED", message: `it is not known whether it ran out of memory: ${memoryKill.why}` };
}

function ended(
  state: ExecutionState,
  end: {
    readonly cause: EndCause;
    readonly message: string;
    readonly code: number | null;
    readonly signal: string | null;
  },
  wallMs: number,
): ExecutionState {
  const { cause, message, code, signal } = end;
  // A file's time is coarser than the clock.
  const endedWallMs = Math.max(wallMs, state.startedWallMs ?? 0);
  return changed({
    ...state,
    message: cut(message),
    phase: { kind: "ended", wallMs: endedWallMs, cause, code, signal },
  });
}

function deadlineAtMs({ maxRunMs }: KeepingRules, sinceMs: number): number | null {
  return maxRunMs === null ? null : sinceMs + maxRunMs;
}

/** Until when it must be ready; null for one that was, or that has no check. */
function readyUntilMs({ check }: KeepingRules, { sinceMs, wasReady }: RunningPhase): number | null {
  return check === null || wasReady ? null : sinceMs + check.readyWithinMs;
}

function neverReady(state: ExecutionState): ExecutionState {
  const { message, rules } = state;
  const withinS = (rules.check?.readyWithinMs ?? 0) / 1_000;
  const why = message === "" ? "its check was not tried" : message;
  return { ...state, message: cut(`not ready within ${withinS} s: ${why}`) };
}

function lostAtMs({ stopOnAgentAfterMs }: KeepingRules, seenAtMs: number): number | null {
  return stopOnAgentAfterMs === null ? null : seenAtMs + stopOnAgentAfterMs;
}

function changed(state: ExecutionState): ExecutionState {
  return { ...state, change: state.change + 1 };
}

function stay(state: ExecutionState): ExecutionStep {
  return { state, effects: [] };
}

function cut(message: string): string {
  return message.slice(0, MOST_MESSAGE);
}
