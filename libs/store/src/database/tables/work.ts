import type { Desired, EndReason, JobState, JobType, Json, Observed, StoredState } from "@rollcall/domain";
import type { ColumnType, Generated } from "kysely";

type Timestamp = ColumnType<Date, Date | undefined, Date>;
type JsonColumn<T> = ColumnType<T, string, string>;
/** The transaction that last wrote a row: see changes.ts. */
type WrittenBy = ColumnType<string, never, never>;

/** The stored state of an execution. For a LIVE execution, the node's report has the details. */
export type ExecutionRowState = StoredState | "ORPHANED";

/** An operator's order for one execution. */
export type ExecutionOrder = "STOP" | "ADOPT";

/** Jobs: what should run. */
export interface JobsTable {
  readonly name: string;
  readonly type: JobType;
  readonly version: number;
  readonly count: number;
  readonly spec: JsonColumn<Json>;
  readonly spec_digest: Buffer;
  readonly actor: string;
  /** When the job was last submitted or started again. */
  readonly submitted_at: Timestamp;
  /** The number of the job's current run, from 1. */
  readonly run: Generated<number>;
  readonly state: Generated<JobState>;
  readonly message: Generated<string>;
  /** Whether an ops job has been placed on all nodes that matched it. */
  readonly placed: Generated<boolean>;
  /** Why the update to the newest version halted; null if it did not halt. */
  readonly halted: string | null;
  /** The newest version whose placed executions all became ready; null for none. */
  readonly ready_version: number | null;
  /** Whether all wanted executions of the newest version and run have been ready for long enough. */
  readonly rolled_out: Generated<boolean>;
  /** How many nodes should run an ops job or daemon and have no execution of it; 0 for other types. */
  readonly waiting_nodes: Generated<number>;
  /** Earlier versions with the same specification as the newest one. */
  readonly same_versions: Generated<readonly number[]>;
  /**
   * The version that the newest version automatically undid; null if a person submitted the newest
   * version.
   */
  readonly undone: number | null;
  readonly edition: Generated<number>;
  /** The millicores that each execution of the newest version requests. */
  readonly millicores: ColumnType<bigint, number | undefined, number>;
  /** Whether the newest version names the one node that runs it. */
  readonly one_node: Generated<boolean>;
  readonly created_at: Timestamp;
  readonly updated_at: Timestamp;
}

/** The versions of jobs, as they were submitted. */
export interface JobVersionsTable {
  readonly job: string;
  readonly version: number;
  readonly spec: JsonColumn<Json>;
  readonly spec_digest: Buffer;
  readonly actor: string;
  readonly reason: string;
  readonly created_at: Timestamp;
  /** When all placed executions of this version first were ready; null for never. */
  readonly ready_at: Date | null;
  /** The version that first had this specification; null if it is this version. */
  readonly origin: number | null;
}

/** Execution specs, keyed by digest. */
export interface ExecutionSpecsTable {
  readonly digest: Buffer;
  readonly spec: Buffer;
  readonly created_at: Timestamp;
}

/** Executions: runs of jobs on nodes. */
export interface ExecutionsTable {
  readonly id: string;
  readonly job: string;
  readonly version: number;
  /** The run of the job that the execution was placed for; 0 for an orphan. */
  readonly run: Generated<number>;
  readonly index: number;
  readonly node_id: string;
  readonly desired: Desired;
  readonly generation: bigint;
  readonly spec_digest: Buffer;
  readonly ports: JsonColumn<Readonly<Record<string, number>>>;
  readonly gpu_uuids: readonly string[];
  readonly millicores: bigint;
  readonly memory_bytes: bigint;
  readonly disk_bytes: bigint;
  /** Whether the execution's resources are still allocated on its node. */
  readonly holds: Generated<boolean>;
  readonly previous: string | null;
  readonly replaced_by: string | null;
  readonly attempt: number;
  readonly state: ExecutionRowState;
  readonly reason: string;
  readonly message: string;
  readonly order_kind: ExecutionOrder | null;
  readonly order_actor: string | null;
  readonly order_message: string | null;
  readonly created_at: Timestamp;
  readonly lost_at: Date | null;
  readonly ended_at: Date | null;
  /**
   * When `desired` last became STOP, by the database's clock. Null if `desired` never became STOP, or if the time
   * is unknown.
   */
  readonly stop_ordered_at: Date | null;
  readonly changed: WrittenBy;
}

/** The last reports of nodes about their executions. */
export interface ExecutionObservationsTable {
  readonly execution_id: string;
  readonly node_id: string;
  readonly epoch: bigint;
  readonly report: bigint;
  readonly observed: Observed | "ABSENT";
  readonly started_at: Date | null;
  readonly ended_at: Date | null;
  readonly end_reason: EndReason | null;
  readonly exit_code: number | null;
  readonly signal: string | null;
  readonly message: Generated<string>;
  readonly job: Generated<string>;
  readonly spec_digest: Buffer | null;
  /** The ports that the execution uses. */
  readonly ports: ColumnType<Readonly<Record<string, number>>, string | undefined, string>;
  readonly gpu_uuids: Generated<readonly string[]>;
  readonly missing: Generated<number>;
  /** Whether the store did not know the execution when it was first reported. */
  readonly unknown: Generated<boolean>;
  /** Since when the execution has been READY without interruption, by the database's clock. */
  readonly ready_at: Date | null;
  readonly observed_at: Timestamp;
  readonly changed: WrittenBy;
}

/** The resources allocated to executions on each node. */
export interface NodeAllocationsTable {
  readonly node_id: string;
  readonly generation: Generated<bigint>;
  readonly millicores: Generated<bigint>;
  readonly memory_bytes: Generated<bigint>;
  readonly disk_bytes: Generated<bigint>;
  readonly gpu_uuids: Generated<readonly string[]>;
  readonly ports: Generated<readonly number[]>;
  readonly executions: Generated<number>;
  readonly changed: WrittenBy;
}

/** The drains of nodes, in progress or finished. */
export interface DrainsTable {
  readonly node_id: string;
  /** The deadline of the drain; null while the drain waits for other nodes of its selection. */
  readonly deadline: Date | null;
  /** Whether the drain finished before the node confirmed the end of all executions. */
  readonly unconfirmed: Generated<boolean>;
  /** How long the drain can take after its start, in milliseconds. */
  readonly deadline_ms: bigint;
  /**
   * The id of the selection that the drain belongs to; empty if all nodes are drained at the same time.
   */
  readonly selection: Generated<string>;
  readonly max_parallel: Generated<number>;
  readonly force: Generated<boolean>;
  readonly ignore_daemons: Generated<boolean>;
  readonly keep_ineligible: Generated<boolean>;
  readonly reason: Generated<string>;
  readonly actor: string;
  readonly started_at: Timestamp;
  readonly drained_at: Date | null;
}

export interface WorkTables {
  readonly jobs: JobsTable;
  readonly job_versions: JobVersionsTable;
  readonly execution_specs: ExecutionSpecsTable;
  readonly executions: ExecutionsTable;
  readonly execution_observations: ExecutionObservationsTable;
  readonly node_allocations: NodeAllocationsTable;
  readonly drains: DrainsTable;
}
