import type { JobViolation } from "./check-task.ts";
import type { JobSpec } from "./job-spec.ts";

/** Where a job stands. */
export type JobState = "ACTIVE" | "STOPPED" | "COMPLETED" | "FAILED";

/** A version of a job. */
export interface VersionSpec {
  readonly version: number;
  readonly spec: JobSpec;
}

/** A job as the record has it. */
export interface JobRecord {
  readonly name: string;
  /** The newest version, from 1. */
  readonly version: number;
  readonly state: JobState;
  /** For people; "" when there is nothing to say. */
  readonly message: string;
  /** Executions wanted; changed by scaling without a new version. Not read for ops jobs and daemons. */
  readonly count: number;
  /** The newest version's. */
  readonly spec: JobSpec;
  /** When it was submitted last, or started again: waiting for nodes counts from it. */
  readonly submittedAtMs: number;
  /**
   * Counts the runs, from 1: a restart begins the next one, and so does submitting a job again that is over. Executions
   * of an earlier run of a service or daemon are replaced as by an update; those of a batch or ops job no longer count.
   */
  readonly run: number;
  /** Whether an ops job has been placed on all nodes that matched it. False for others. */
  readonly placed: boolean;
  /** Why the update to the newest version halted; null while it continues, or there is none. */
  readonly halted: string | null;
  /** The newest version of a service or daemon of which all that was placed became ready; null for none. */
  readonly readyVersion: number | null;
  /** Earlier versions with the specification of the newest one, which reverts to them: what runs of them stays. */
  readonly sameVersions?: readonly number[];
  /** The version that the newest one undid automatically; absent or null where somebody submitted the newest one. */
  readonly undone?: number | null;
  /** `readyVersion` with its specification, where it is not the newest: what is placed once the update has halted. */
  readonly fallback?: VersionSpec;
  /** What the rules hold against the newest version; absent for nothing. Nothing more of it is placed. */
  readonly violations?: readonly JobViolation[];
}

/** A drain as the record has it. */
export interface DrainRecord {
  readonly nodeId: string;
  /** UNCONFIRMED: it is over, and its node may still run something of what it concerned. */
  readonly state: "DRAINING" | "DRAINED" | "UNCONFIRMED";
  /** By the record's clock; null for none. */
  readonly deadlineAtMs: number | null;
  /** Stop all work at once. */
  readonly force: boolean;
  readonly ignoreDaemons: boolean;
}
