import type { Loss } from "../../brake/reaction.ts";
import type { ShownBrake } from "../../brake/shown-brakes.ts";
import type { OneWait } from "../wait.ts";
import type { KnownJob, WorkState } from "./work-state.ts";

/** The part of a node's drain that explains waiting. */
export interface WaitingDrain {
  readonly startedAtMs: number;
  readonly deadlineAtMs: number | null;
  readonly queued: boolean;
  readonly force: boolean;
  readonly ignoreDaemons: boolean;
}

/** What explains waiting besides what the scheduler plans with. */
export interface WaitFacts {
  /** Wall time of the store. */
  readonly nowMs: number;
  /** The losses of nodes that are not well. */
  readonly losses: ReadonlyMap<string, Loss>;
  /** The conditions that nodes report, for people. */
  readonly conditions: ReadonlyMap<string, string>;
  /** Drains that are not over, by node. */
  readonly drains: ReadonlyMap<string, WaitingDrain>;
  /** All brakes; needed only where a reaction is pending. */
  readonly brakes: readonly ShownBrake[];
  /** When the update halted; null for unknown. */
  readonly haltedAtMs: number | null;
}

/** One job that is explained. */
export interface WaitContext {
  readonly state: WorkState;
  readonly job: KnownJob;
  readonly facts: WaitFacts;
  /** Why no node fits one more execution; null where one does. */
  readonly refusals: () => string | null;
  /** Whether update.maxParallel lets no more executions be moved now. */
  readonly isPaced: boolean;
}

/** A change that is planned and that a scheduler has not committed yet. */
export function scheduling(of: Pick<OneWait, "executionId" | "nodeId" | "sinceMs">): OneWait {
  const text = "nothing holds it any more, and the scheduler has not planned it yet";
  return waitOf({ ...of, reason: "SCHEDULER_PENDING", text, command: "rollcall doctor" });
}

/** Fill in a wait: what is not given is unknown, unlimited, or without a command. */
export function waitOf(one: Pick<OneWait, "reason" | "text"> & Partial<OneWait>): OneWait {
  return { executionId: null, nodeId: null, sinceMs: null, untilMs: null, command: "", ...one };
}

export function nodeWhy(nodeId: string): string {
  return `rollcall node why ${nodeId}`;
}

export function jobWhy(name: string): string {
  return `rollcall job why ${name}`;
}
