import type { Exit } from "../execution/execution-state.ts";

/** What of an engine's answer tells what happened to a container. */
export interface ContainerState {
  readonly Status: string;
  readonly ExitCode: number;
  readonly OOMKilled: boolean;
  readonly FinishedAt: string;
}

/** What happened to a container. */
export type ContainerVerdict =
  | { readonly kind: "created" }
  | { readonly kind: "runs" }
  /** `exit` is null when how it ended was not seen. */
  | { readonly kind: "exited"; readonly exit: Exit | null; readonly wallMs: number | null };

/**
 * Decide what happened to a container. One whose end was written down after the present boot of the machine although it
 * was begun before did not end: the machine did, and its engine cleared up. `bootWallMs` is null for one of this boot.
 */
export function judgeContainer(state: ContainerState, bootWallMs: number | null): ContainerVerdict {
  switch (state.Status) {
    case "created":
    case "configured":
    case "initialized":
      return { kind: "created" };
    case "exited":
    case "stopped":
    case "dead": {
      const atMs = Date.parse(state.FinishedAt);
      // Engines say the year 1 for what did not happen.
      const wallMs = Number.isFinite(atMs) && atMs > 0 ? atMs : null;
      const wasSeen = bootWallMs === null || (wallMs !== null && wallMs < bootWallMs);
      // A signal is a code above 128 here: engines do not tell them apart.
      const exit = {
        code: state.ExitCode,
        signal: null,
        memoryKill: { kind: state.OOMKilled ? ("yes" as const) : ("no" as const) },
      };
      return { kind: "exited", exit: wasSeen ? exit : null, wallMs };
    }
    default:
      // "running", and states on the way from it, such as "paused", "restarting", "stopping" and "removing".
      return { kind: "runs" };
  }
}
