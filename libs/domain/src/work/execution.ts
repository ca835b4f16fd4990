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

/**
 * Where an execution stands, as the record has it: "LIVE" until it is lost or ends, whatever its node sees of it.
 * Shown is shownState() of it.
 */
export type RecordedState = "LIVE" | "LOST" | TerminalState;

/** What an execution was given of its node. */
export interface Grant {
  readonly millicores: number;
  readonly memoryBytes: number;
  readonly diskBytes: number;
  /** Ports by label. */
  readonly ports: Readonly<Record<string, number>>;
  readonly gpuUuids: readonly string[];
}

/** An execution as the record has it: all that the scheduler alone writes. */
export interface ExecutionRecord {
  readonly id: string;
  readonly job: string;
  readonly version: number;
  /** The job's run that it was placed for; 0 for an orphan. */
  readonly run: number;
  /** Its place in the job, from 0. Executions that replace each other have the same one. */
  readonly index: number;
  readonly nodeId: string;
  readonly desired: Desired;
  readonly grant: Grant;
  /** Whether the grant is taken off the node. It is returned when the node confirms the end, or is gone for good. */
  readonly holds: boolean;
  /** The execution whose place it took; null for none. */
  readonly previous: string | null;
  /** The execution that took its place; null for none. */
  readonly replacedBy: string | null;
  /** How often the place had failed before. */
  readonly attempt: number;
  readonly state: RecordedState;
  /** Why it is told to stop, is lost or has ended; "" while it is wanted. */
  readonly reason: string;
  /** For people. */
  readonly message: string;
  readonly createdAtMs: number;
  /** When it was recorded as lost; null while it is not. */
  readonly lostAtMs: number | null;
  /** When it reached a final state; null before. */
  readonly endedAtMs: number | null;
}
