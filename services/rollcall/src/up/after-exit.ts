import { fullJitter } from "@rollcall/process";

/** How the agent of `up` ended. */
export interface AgentExit {
  /** The exit code; null when a signal ended it. */
  readonly code: number | null;
  readonly signal: string | null;
  /** How long the agent ran. */
  readonly ranMs: number;
  /** Number of consecutive crashes before this one. */
  readonly crashes: number;
}

/** The action for an agent that has ended. */
export type AfterExit =
  | { readonly kind: "restart"; readonly pauseMs: number; readonly crashes: number }
  /** Do not restart an agent that was stopped, or whose configuration is wrong. */
  | { readonly kind: "stay-down" };

/**
 * Signals that people and service managers use to stop a process. SIGKILL is not among them, because the kernel also
 * sends it when memory runs out.
 */
const DELIBERATE: ReadonlySet<string> = new Set(["SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT"]);
const DONE = 0;
const MISUSED = 2;
const PAUSE_BASE_MS = 1000;
const PAUSE_MAX_MS = 60_000;
/** Running time after which earlier crashes of an agent no longer count. */
const STEADY_AFTER_MS = 60_000;

/**
 * Decide what to do about an agent that has ended. An agent that was stopped deliberately stays stopped. An agent
 * that crashed or was killed is restarted, with growing pauses.
 */
export function decideAfterExit(exit: AgentExit, random01: number): AfterExit {
  const deliberate = exit.signal !== null && DELIBERATE.has(exit.signal);
  // Do not restart after a usage error, which would only occur again.
  if (deliberate || exit.code === DONE || exit.code === MISUSED) return { kind: "stay-down" };
  const before = exit.ranMs >= STEADY_AFTER_MS ? 0 : exit.crashes;
  const pauseMs =
    PAUSE_BASE_MS / 2 + fullJitter({ attempt: before, baseMs: PAUSE_BASE_MS, maxMs: PAUSE_MAX_MS, random01 });
  return { kind: "restart", pauseMs, crashes: before + 1 };
}
