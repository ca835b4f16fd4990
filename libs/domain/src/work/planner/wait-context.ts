import type { Loss } from "../../brake/reaction.ts";
import type { ShownBrake } from "../../brake/shown-brakes.ts";
import type { OneWait } from "../wait.ts";
import type { LiveJob, WorkState } from "./work-state.ts";

/** The facts about a node's drain that explain why executions wait. */
export interface WaitingDrain {
  readonly startedAtMs: number;
  readonly deadlineAtMs: number | null;
  readonly queued: boolean;
  readonly force: boolean;
  readonly ignoreDaemons: boolean;
}

/** The facts that explain waits but are not part of the scheduler's state. */
export interface WaitFacts {
  /** Wall time of the store. */
  readonly nowMs: number;
  /** The losses of unhealthy nodes, keyed by node. */
  readonly losses: ReadonlyMap<string, Loss>;
  /** The conditions that nodes report, for people, keyed by node. */
  readonly conditions: ReadonlyMap<string, string>;
  /** Drains in progress, keyed by node. */
  readonly drains: ReadonlyMap<string, WaitingDrain>;
  /** All brakes; needed only if a reaction is pending. */
  readonly brakes: readonly ShownBrake[];
  /** When the job's update halted; null if unknown. */
  readonly haltedAtMs: number | null;
  /**
   * When executions were ordered to stop, keyed by execution id. Executions whose time is unknown
   * are absent.
   */
  readonly stopsOrderedAtMs: ReadonlyMap<string, number>;
}

/** The job to explain, with the facts to explain it. */
export interface WaitContext {
  readonly state: WorkState;
  readonly job: LiveJob;
  readonly facts: WaitFacts;
  /** Why no node fits one more execution; null if some node fits. */
  readonly refusals: () => string | null;
  /** Whether update.maxParallel currently prevents moving more executions. */
  readonly isPaced: boolean;
}

/** Create a wait for a change that the scheduler has not planned yet. */
export function scheduling(of: Pick<OneWait, "executionId" | "nodeId" | "sinceMs">): OneWait {
  const text = "it waits for the scheduler, which has not planned it yet";
  return waitOf({ ...of, reason: "SCHEDULER_PENDING", text, command: "rollcall doctor" });
}

/** Create a wait. Omitted fields mean unknown, unlimited, or no command. */
export function waitOf(one: Pick<OneWait, "reason" | "text"> & Partial<OneWait>): OneWait {
  return { executionId: null, nodeId: null, sinceMs: null, untilMs: null, command: "", ...one };
}

export function nodeWhy(nodeId: string): string {
  return `rollcall node why ${nodeId}`;
}

export function jobWhy(name: string): string {
  return `rollcall job why ${name}`;
}
