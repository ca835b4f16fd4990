import type { Execution, Observation } from "./execution.ts";
import type { Drain, Job } from "./job.ts";

/** The kind of a change to an execution. The kind determines the event and how the change is counted. */
export type ExecutionChangeKind =
  /** A new execution: `before` is null, and its grant is added. There is one event per commit and job. */
  | "PLACED"
  /** The execution is ordered to stop. It has no event until it ends. */
  | "STOPPING"
  /**
   * The execution stays after all: its replacement in an update ended, or the update halted or was reverted
   * before the replacement was ready.
   */
  | "RESTORED"
  /**
   * The execution is replaced by another execution in the same plan. It is ordered to stop, unless it is kept
   * for now.
   */
  | "REPLACING"
  /** The execution is lost: reactions to the loss of its node are allowed, or the node no longer has it. */
  | "LOST"
  /** The lost execution has returned and runs again. */
  | "FOUND"
  /** The execution has reached a final state. */
  | "ENDED"
  /**
   * The node has confirmed the end of an execution that was already in a final state, so its grant is
   * released. No event.
   */
  | "FREED";

/** A change to an execution. Its grant is released if `holds` becomes false. */
export interface ExecutionChange {
  readonly kind: ExecutionChangeKind;
  readonly before: Execution | null;
  readonly after: Execution;
  /** The node's last report about the execution. */
  readonly observation: Observation | null;
}

/** A change to a job. */
export interface JobChange {
  readonly before: Job;
  readonly after: Job;
}

/** A change to a drain that has finished. */
export interface DrainChange {
  readonly before: Drain;
  readonly after: Drain;
}

/**
 * Changes that are committed atomically. Each execution occurs once, with its final result: an execution that
 * is replaced and ends in the same plan has kind ENDED.
 */
export interface Plan {
  readonly executions: readonly ExecutionChange[];
  readonly jobs: readonly JobChange[];
  readonly drains: readonly DrainChange[];
  /**
   * Nodes whose loss the plan reacts to. The plan can be committed only while these reactions are allowed.
   */
  readonly lostNodes: readonly string[];
  /** When to plan again if nothing is applied earlier; null for never. */
  readonly wakeAtMs: number | null;
  /** Whether the plan reached its limits. If so, plan again immediately. */
  readonly more: boolean;
}

/** The input of a plan. */
export interface PlanInput {
  /** Wall time of the store. */
  readonly nowMs: number;
  /** Returns a new execution id, which is greater than all previous ids. */
  readonly newId: () => string;
  /** Maximum number of executions to place; 1,000 by default. */
  readonly mostPlaced?: number;
}
