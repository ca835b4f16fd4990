import type { JobViolation } from "./check-task.ts";
import type { JobSpec } from "./job-spec.ts";

/** The state of a job. */
export type JobState = "ACTIVE" | "STOPPED" | "COMPLETED" | "FAILED";

/** A version of a job. */
export interface VersionSpec {
  readonly version: number;
  readonly spec: JobSpec;
}

/** A job in the store. */
export interface Job {
  readonly name: string;
  /** The number of the newest version, from 1. */
  readonly version: number;
  readonly state: JobState;
  /** The message for people; "" for none. */
  readonly message: string;
  /** How many executions are wanted. Scaling changes this without a new version. Ignored for ops jobs and daemons. */
  readonly count: number;
  /** The newest version's spec. */
  readonly spec: JobSpec;
  /** When the job was last submitted or restarted. The job's wait for nodes is counted from this time. */
  readonly submittedAtMs: number;
  /**
   * The number of the run, from 1. Restarting a job, or submitting it again after it has ended, starts a new run. In
   * a service or daemon, executions of an earlier run are replaced as in an update. In a batch or ops job, they no
   * longer count.
   */
  readonly run: number;
  /** Whether an ops job has been placed on all matching nodes. False for other types. */
  readonly placed: boolean;
  /** Why the update to the newest version halted; null if it did not. */
  readonly halted: string | null;
  /** The newest version of a service or daemon whose placed executions all became ready; null for none. */
  readonly readyVersion: number | null;
  /**
   * Whether all wanted executions of a service or daemon were placed with the newest version and were ready for long
   * enough. False for other types.
   */
  readonly rolledOut: boolean;
  /**
   * The number of nodes that should run an ops job or daemon and have no execution of it, for example because they have
   * no room. 0 for other types.
   */
  readonly waitingNodes: number;
  /**
   * Earlier versions with the same specification as the newest version, if that is a revert. Their running executions
   * stay.
   */
  readonly sameVersions?: readonly number[];
  /** If the newest version is an automatic revert, the version that it undid. Absent or null otherwise. */
  readonly undone?: number | null;
  /** `readyVersion` with its specification, unless it is the newest version. It is placed after an update halts. */
  readonly fallback?: VersionSpec;
  /**
   * The rules that the newest version violates; absent for none. As long as a rule is violated, no execution is
   * placed.
   */
  readonly violations?: readonly JobViolation[];
}

/** A drain in the store. */
export interface Drain {
  readonly nodeId: string;
  /** UNCONFIRMED means that the drain has finished but the node may still run executions that it covered. */
  readonly state: "DRAINING" | "DRAINED" | "UNCONFIRMED";
  /** The deadline by the store's clock; null for no deadline. */
  readonly deadlineAtMs: number | null;
  /** Whether to stop all executions immediately. */
  readonly force: boolean;
  readonly ignoreDaemons: boolean;
}
