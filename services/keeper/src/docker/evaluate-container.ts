import type { Exit } from "../state/execution-state.ts";

/** The parts of an engine's response that show what happened to a container. */
export interface ContainerState {
  readonly Status: string;
  readonly ExitCode: number;
  readonly OOMKilled: boolean;
  readonly FinishedAt: string;
}

/** The current state of a container, or how it ended. */
export type ContainerEvaluation =
  | { readonly kind: "created" }
  | { readonly kind: "runs" }
  /** `exit` is null when it is unknown how the container ended. */
  | { readonly kind: "exited"; readonly exit: Exit | null; readonly wallMs: number | null };

/**
 * Decide what happened to a container. If it was started before this boot of the machine, and the engine recorded its
 * end after the boot, the container did not exit: the machine rebooted, and the engine cleaned up. `bootWallMs` is null
 * for a container of this boot.
 */
export function evaluateContainer(state: ContainerState, bootWallMs: number | null): ContainerEvaluation {
  switch (state.Status) {
    case "created":
    case "configured":
    case "initialized":
      return { kind: "created" };
    case "exited":
    case "stopped":
    case "dead": {
      const atMs = Date.parse(state.FinishedAt);
      // Ignore the year 1, which engines report as the time of an event that did not happen.
      const wallMs = Number.isFinite(atMs) && atMs > 0 ? atMs : null;
      const wasSeen = bootWallMs === null || (wallMs !== null && wallMs < bootWallMs);
      // A signal becomes an exit code above 128, because engines do not distinguish the two.
      const exit = {
        code: state.ExitCode,
        signal: null,
        memoryKill: { kind: state.OOMKilled ? ("yes" as const) : ("no" as const) },
      };
      return { kind: "exited", exit: wasSeen ? exit : null, wallMs };
    }
    default:
      // The state is "running", or a transitional state such as "paused", "restarting", "stopping" or "removing".
      return { kind: "runs" };
  }
}
