import type { ExecutionRecord, Observation } from "./execution.ts";
import type { DrainRecord, JobRecord } from "./job-record.ts";

/** What a change of an execution is: how it is told in the log, and counted. */
export type ExecutionChangeKind =
  /** It is new: `before` is null, and its grant is to be taken. Told once for each commit and job. */
  | "PLACED"
  /** It is told to stop. Told only by what comes of it. */
  | "STOPPING"
  /** Its replacement in an update ended, or the update did, before that was ready: it stays. No event. */
  | "RESTORED"
  /** Another takes its place, which is in the same plan; it is told to stop, unless its loss policy keeps it. */
  | "REPLACING"
  /** Reactions to the loss of its node are allowed, or its node no longer has it. */
  | "LOST"
  /** It was lost, is there again and was not replaced. */
  | "FOUND"
  /** It has a final state, and is to be forgotten by its node. */
  | "ENDED"
  /** It had a final state, and its grant is returned now that its node confirmed the end. No event. */
  | "FREED";

/** One execution before and after a plan. Its grant is returned where `holds` turns false. */
export interface ExecutionChange {
  readonly kind: ExecutionChangeKind;
  readonly before: ExecutionRecord | null;
  readonly after: ExecutionRecord;
  /** What its node said last. */
  readonly observation: Observation | null;
}

/** A job before and after. */
export interface JobChange {
  readonly before: JobRecord;
  readonly after: JobRecord;
}

/** A drain before and after: it is done. */
export interface DrainChange {
  readonly before: DrainRecord;
  readonly after: DrainRecord;
}

/**
 * What to commit, whole or not at all. An execution occurs once, with all that becomes of it, except that one
 * which is replaced and ended at the same time is told as ENDED.
 */
export interface Plan {
  readonly executions: readonly ExecutionChange[];
  readonly jobs: readonly JobChange[];
  readonly drains: readonly DrainChange[];
  /** Nodes whose loss it follows from: it may be written only as long as reactions to that are allowed. */
  readonly lostNodes: readonly string[];
  /** When to plan again if nothing is applied before; null for never. */
  readonly wakeAtMs: number | null;
  /** Whether the limits of one plan were reached: plan again at once. */
  readonly more: boolean;
}

/** What a plan is made with. */
export interface PlanInput {
  /** Wall time of the record. */
  readonly nowMs: number;
  /** Makes the id of a new execution: greater than all before. */
  readonly newId: () => string;
  /** Executions placed at most; 1,000. */
  readonly mostPlaced?: number;
}
