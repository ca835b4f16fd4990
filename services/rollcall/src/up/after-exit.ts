import { fullJitter } from "@rollcall/process";

/** How the agent that `up` started ended. */
export interface AgentExit {
  /** The exit code; null when a signal ended it. */
  readonly code: number | null;
  readonly signal: string | null;
  /** How long it had run. */
  readonly ranMs: number;
  /** Crashes in a row before this one. */
  readonly crashes: number;
}

/** What follows. */
export type AfterExit =
  | { readonly kind: "restart"; readonly pauseMs: number; readonly crashes: number }
  /** It was stopped, or its configuration is wrong. */
  | { readonly kind: "stay-down" };

/** Signals with which people and service managers stop a process. SIGKILL also comes from a kernel without memory. */
const DELIBERATE: ReadonlySet<string> = new Set(["SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT"]);
const DONE = 0;
const MISUSED = 2;
const PAUSE_BASE_MS = 1000;
const PAUSE_MAX_MS = 60_000;
/** An agent that ran for so long had overcome what made it crash before. */
const STEADY_AFTER_MS = 60_000;

/**
 * Decide what to do about an agent that ended. One that was stopped stays down, because somebody wanted that. One that
 * crashed or was killed is started again, after a longer pause each time.
 */
export function decideAfterExit(exit: AgentExit, random01: number): AfterExit {
  const deliberate = exit.signal !== null && DELIBERATE.has(exit.signal);
  // Wrong usage would only be wrong again.
  if (deliberate || exit.code === DONE || exit.code === MISUSED) return { kind: "stay-down" };
  const before = exit.ranMs >= STEADY_AFTER_MS ? 0 : exit.crashes;
  const pauseMs =
    PAUSE_BASE_MS / 2 + fullJitter({ attempt: before, baseMs: PAUSE_BASE_MS, maxMs: PAUSE_MAX_MS, random01 });
  return { kind: "restart", pauseMs, crashes: before + 1 };
}
