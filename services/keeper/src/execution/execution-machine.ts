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
} from "../state/execution-state.ts";

/** A new state and the effects to carry out. */
export interface ExecutionStep {
  readonly state: ExecutionState;
  readonly effects: readonly ExecutionEffect[];
}

type RunningPhase = Extract<Phase, { readonly kind: "running" }>;

/**
 * How long to wait before killing again, if processes are still running after SIGKILL. The signal has no effect while
 * the kernel waits for a disk, and a kill can fail, for example when the keeper cannot open a file.
 */
const KILL_AGAIN_MS = 5_000;

/** How long after the start the first check runs. Immediately after the start, hardly any program listens yet. */
const FIRST_CHECK_MS = 500;

const MOST_MESSAGE = 512;

/** The state of an execution whose process is about to be started. */
export function beginExecution(rules: KeepingRules): ExecutionState {
  return { rules, phase: { kind: "starting", stop: null }, change: 1, startedWallMs: null, message: "" };
}

/** The end of an execution that the keeper did not start or does not know. */
export interface NeverStarted {
  readonly cause: Extract<EndCause, "STOPPED" | "START_FAILED" | "GONE">;
  readonly message: string;
}

/** The state of an execution that ended before it was started. */
export function neverStarted(rules: KeepingRules, end: NeverStarted, wallMs: number): ExecutionState {
  return ended(beginExecution(rules), { ...end, code: null, signal: null, killAtMs: null }, wallMs);
}

/** When the next `due` event must be sent; null for never. */
export function dueAtMs({ phase, rules }: ExecutionState, seenAtMs: number): number | null {
  switch (phase.kind) {
    case "starting":
      return null;
    case "stopping":
    case "ended":
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

/** Apply an event to an execution. After the end, processes are only killed until none remains. */
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
      const cause: EndCause = phase.stop ?? "START_FAILED";
      const end = { cause, message: event.message, code: null, signal: null, killAtMs: killAgainAtMs(input) };
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
    case "released": {
      if (phase.kind !== "ended" || phase.killAtMs === null) return stay(state);
      // Report nothing, because the control plane already knows the end, which does not change.
      return { state: { ...state, phase: { ...phase, killAtMs: null } }, effects: [{ kind: "save" }] };
    }
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
  // Keep a ready execution ready, and keep its message.
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
  const told = {
    ...state,
    message: cut(`check failed ${failures === 1 ? "once" : `${failures} times in a row`}: ${message}`),
  };
  // Report the failures once, not with each check. If the execution ends at its deadline, its message is that of the
  // last check.
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
      return stay(state);
    case "ended":
      if (!isDue(phase.killAtMs)) return stay(state);
      return { state: { ...state, phase: { ...phase, killAtMs: killAgainAtMs(input) } }, effects: [{ kind: "kill" }] };
    case "stopping": {
      if (!isDue(phase.killAtMs)) return stay(state);
      const again = { ...phase, killAtMs: killAgainAtMs(input), isKilled: true };
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
    // Save before sending the signal. If this keeper is killed in between, the next one sends the signal. In the
    // reverse order, the next keeper could report the exit as the program's own.
    effects: [{ kind: "save" }, { kind: "signal", signal: stopSignal }],
  };
}

function onExited(
  state: ExecutionState,
  phase: Exclude<Phase, { readonly kind: "ended" }>,
  exit: Exit | null,
  input: ExecutionInput,
): ExecutionStep {
  const { code, signal } = exit ?? { code: null, signal: null };
  const { cause, message } = causeOf(state, phase, exit);
  // Also kill the processes that the program left behind.
  return {
    state: ended(state, { cause, message, code, signal, killAtMs: killAgainAtMs(input) }, input.wallMs),
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
  if (exit === null) return { cause: "GONE", message: "the process disappeared, and how it ended is unknown" };
  // Drop the message of the last check, because it does not explain why the program ended.
  const { code, memoryKill } = exit;
  if (code === 0 || memoryKill.kind === "no") return { cause: "EXITED", message: "" };
  if (memoryKill.kind === "yes") return { cause: "OOM", message: "" };
  return { cause: "EXITED", message: `unknown whether the process ran out of memory: ${memoryKill.why}` };
}

function ended(
  state: ExecutionState,
  end: {
    readonly cause: EndCause;
    readonly message: string;
    readonly code: number | null;
    readonly signal: string | null;
    readonly killAtMs: number | null;
  },
  wallMs: number,
): ExecutionState {
  const { message, ...others } = end;
  // Use the start as a lower limit, because the end comes from a file's time, which is coarser than the clock.
  const endedWallMs = Math.max(wallMs, state.startedWallMs ?? 0);
  return changed({
    ...state,
    message: cut(message),
    phase: { kind: "ended", wallMs: endedWallMs, ...others },
  });
}

function deadlineAtMs({ maxRunMs }: KeepingRules, sinceMs: number): number | null {
  return maxRunMs === null ? null : sinceMs + maxRunMs;
}

/** The deadline for becoming ready; null if the execution was ready before or has no check. */
function readyUntilMs({ check }: KeepingRules, { sinceMs, wasReady }: RunningPhase): number | null {
  return check === null || wasReady ? null : sinceMs + check.readyWithinMs;
}

function neverReady(state: ExecutionState): ExecutionState {
  const { message, rules } = state;
  const withinS = (rules.check?.readyWithinMs ?? 0) / 1_000;
  const why = message === "" ? "the check has not run" : message;
  return { ...state, message: cut(`not ready within ${withinS} s: ${why}`) };
}

function lostAtMs({ stopOnAgentAfterMs }: KeepingRules, seenAtMs: number): number | null {
  return stopOnAgentAfterMs === null ? null : seenAtMs + stopOnAgentAfterMs;
}

function changed(state: ExecutionState): ExecutionState {
  return { ...state, change: state.change + 1 };
}

function killAgainAtMs({ nowMs }: ExecutionInput): number {
  return nowMs + KILL_AGAIN_MS;
}

function stay(state: ExecutionState): ExecutionStep {
  return { state, effects: [] };
}

function cut(message: string): string {
  return message.slice(0, MOST_MESSAGE);
}
