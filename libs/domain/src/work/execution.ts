/**
 * The action that the scheduler wants from a node for an execution. FORGET follows after the end has been
 * recorded.
 */
export type Desired = "RUN" | "STOP" | "FORGET";

/** The state of an execution as its node reports it. */
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

/** A node's last report about an execution. */
export interface Observation {
  readonly observed: Observed;
  /** The epoch of the session in which the node reported. */
  readonly epoch: number;
  readonly report: number;
  readonly startedAtMs: number | null;
  readonly endedAtMs: number | null;
  readonly end: EndReason | null;
  readonly exitCode: number | null;
  /** The name of the signal that ended the execution; null for none. */
  readonly signal: string | null;
  readonly message: string;
}

/** Final states. */
export type TerminalState = "COMPLETED" | "FAILED" | "STOPPED" | "KILLED_OOM" | "REPLACED";

/** The state of an execution as shown to people. */
export type ExecutionState = "PENDING" | "STARTING" | "RUNNING" | "READY" | "LOST" | "ORPHANED" | TerminalState;

/**
 * The state of an execution in the store. It is "LIVE" until the execution is lost or ends, whatever its node
 * reports. shownState() derives the state to show.
 */
export type StoredState = "LIVE" | "LOST" | TerminalState;

/** The resources that an execution has been granted on its node. */
export interface Grant {
  readonly millicores: number;
  readonly memoryBytes: number;
  readonly diskBytes: number;
  /** Ports by label. */
  readonly ports: Readonly<Record<string, number>>;
  readonly gpuUuids: readonly string[];
}

/** An execution in the store. Only the scheduler writes these fields. */
export interface Execution {
  readonly id: string;
  readonly job: string;
  readonly version: number;
  /** The run of the job that the execution was placed for; 0 for an orphan. */
  readonly run: number;
  /** The replica index, from 0. An execution and its replacement have the same index. */
  readonly index: number;
  readonly nodeId: string;
  readonly desired: Desired;
  readonly grant: Grant;
  /**
   * Whether the execution still holds its grant on the node. The grant ends when the node confirms the end of
   * the execution or is permanently gone.
   */
  readonly holds: boolean;
  /** The execution that this one replaced; null for none. */
  readonly previous: string | null;
  /** The execution that replaced this one; null for none. */
  readonly replacedBy: string | null;
  /** The number of times that the replica had failed before this execution. */
  readonly attempt: number;
  readonly state: StoredState;
  /** Why the execution was ordered to stop, was lost or has ended; "" while the execution is wanted. */
  readonly reason: string;
  /** For people. */
  readonly message: string;
  readonly createdAtMs: number;
  /** When the loss was recorded; null if the execution is not lost. */
  readonly lostAtMs: number | null;
  /** When the execution reached a final state; null before that. */
  readonly endedAtMs: number | null;
}
