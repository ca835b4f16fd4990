/** What the scheduler wants of an execution. "FORGET" once its end has been recorded. */
export type Desired = "RUN" | "STOP" | "FORGET";

/** What a node sees of an execution. */
export type Observed = "STARTING" | "RUNNING" | "READY" | "ENDED";

/** How an execution ended on its node. */
export type EndReason =
  | "EXITED"
  | "OOM"
  | "STOPPED"
  | "START_FAILED"
  | "CHECK_FAILED"
  | "DEADLINE_EXCEEDED"
  | "CONTROL_PLANE_LOST"
  | "GONE";

/** What a node said last about an execution. */
export interface Observation {
  readonly observed: Observed;
  /** The session's epoch and the number of the report by which the node said so. */
  readonly epoch: number;
  readonly report: number;
  readonly startedAtMs: number | null;
  readonly endedAtMs: number | null;
  readonly end: EndReason | null;
  readonly exitCode: number | null;
  /** Name of the signal that ended it; null for none. */
  readonly signal: string | null;
  readonly message: string;
}

/** States that are final. */
export type TerminalState = "COMPLETED" | "FAILED" | "STOPPED" | "KILLED_OOM" | "REPLACED";

/** Where an execution stands, as it is shown. */
export type ExecutionState = "PENDING" | "STARTING" | "RUNNING" | "READY" | "LOST" | "ORPHANED" | TerminalState;
