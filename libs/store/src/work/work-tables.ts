import type { Desired, EndReason, JobState, JobType, Json, Observed, RecordedState } from "@rollcall/domain";
import type { ColumnType, Generated } from "kysely";

type Timestamp = ColumnType<Date, Date | undefined, Date>;
type JsonColumn<T> = ColumnType<T, string, string>;
/** The transaction that wrote a row last: see changes.ts. */
type WrittenBy = ColumnType<string, never, never>;

/** What is stored of where an execution stands; what its node says completes LIVE. */
export type StoredState = RecordedState | "ORPHANED";

/** What an operator wants of one execution. */
export type ExecutionOrder = "STOP" | "ADOPT";

/** What should run. */
export interface JobsTable {
  readonly name: string;
  readonly type: JobType;
  readonly version: number;
  readonly count: number;
  readonly spec: JsonColumn<Json>;
  readonly spec_digest: Buffer;
  readonly actor: string;
  /** When it was submitted last, or started again. */
  readonly submitted_at: Timestamp;
  /** Counts its runs, from 1. */
  readonly run: Generated<number>;
  readonly state: Generated<JobState>;
  readonly message: Generated<string>;
  /** Whether an ops job has been placed on all nodes that matched it. */
  readonly placed: Generated<boolean>;
  /** Why the update to the newest version halted; null while it continues, or there is none. */
  readonly halted: string | null;
  /** The newest version of which all that was placed became ready; null for none. */
  readonly ready_version: number | null;
  /** Earlier versions with the specification of the newest one. */
  readonly same_versions: Generated<readonly number[]>;
  /** The version that the newest one undid automatically; null where somebody submitted it. */
  readonly undone: number | null;
  readonly edition: Generated<number>;
  /** What each execution of the newest version asks for. */
  readonly millicores: ColumnType<bigint, number | undefined, number>;
  /** Whether the newest version names the one node that runs it. */
  readonly one_node: Generated<boolean>;
  readonly created_at: Timestamp;
  readonly updated_at: Timestamp;
}

/** What was submitted, each version as it was. */
export interface JobVersionsTable {
  readonly job: string;
  readonly version: number;
  readonly spec: JsonColumn<Json>;
  readonly spec_digest: Buffer;
  readonly actor: string;
  readonly reason: string;
  readonly created_at: Timestamp;
  /** When all that was placed of it became ready; null for never. */
  readonly ready_at: Date | null;
  /** The version that first had the specification; null where it is this one. */
  readonly origin: number | null;
}

/** What nodes are told to run, by its digest. */
export interface ExecutionSpecsTable {
  readonly digest: Buffer;
  readonly spec: Buffer;
  readonly created_at: Timestamp;
}

/** Runs of jobs on nodes. */
export interface ExecutionsTable {
  readonly id: string;
  readonly job: string;
  readonly version: number;
  /** The job's run that it was placed for; 0 for an orphan. */
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
  /** Whether its resources are still taken off its node. */
  readonly holds: Generated<boolean>;
  readonly previous: string | null;
  readonly replaced_by: string | null;
  readonly attempt: number;
  readonly state: StoredState;
  readonly reason: string;
  readonly message: string;
  readonly order_kind: ExecutionOrder | null;
  readonly order_actor: string | null;
  readonly order_message: string | null;
  readonly created_at: Timestamp;
  readonly lost_at: Date | null;
  readonly ended_at: Date | null;
  readonly changed: WrittenBy;
}

/** What nodes say of executions. */
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
  /** What it runs with. */
  readonly ports: ColumnType<Readonly<Record<string, number>>, string | undefined, string>;
  readonly gpu_uuids: Generated<readonly string[]>;
  readonly missing: Generated<number>;
  /** Whether the store did not know the execution when it was first reported. */
  readonly unknown: Generated<boolean>;
  /** Since when it has been READY without a break, by the record's clock. */
  readonly ready_at: Date | null;
  readonly observed_at: Timestamp;
  readonly changed: WrittenBy;
}

/** What executions have been given of each node. */
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

/** Nodes whose work is to move or end, or has. */
export interface DrainsTable {
  readonly node_id: string;
  /** Null while it waits for others of its selection. */
  readonly deadline: Date | null;
  /** Whether it is over without its node's confirmation of all ends. */
  readonly unconfirmed: Generated<boolean>;
  /** The time that it may take from its beginning. */
  readonly deadline_ms: bigint;
  /** Empty where all nodes are drained at a time. */
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

/** The tables of work. */
export interface WorkTables {
  readonly jobs: JobsTable;
  readonly job_versions: JobVersionsTable;
  readonly execution_specs: ExecutionSpecsTable;
  readonly executions: ExecutionsTable;
  readonly execution_observations: ExecutionObservationsTable;
  readonly node_allocations: NodeAllocationsTable;
  readonly drains: DrainsTable;
}
