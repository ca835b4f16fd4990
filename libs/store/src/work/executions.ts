import type { Desired, Observation } from "@rollcall/domain";
import { type SqlBool, sql } from "kysely";
import type { Db, Tx } from "../database/store.ts";
import { type ChangePosition, type Changes, changedSince } from "./changes.ts";
import type { ExecutionOrder, StoredState } from "./work-tables.ts";

/** What a node said last of an execution, with what the record adds. */
export interface ObservationRecord extends Omit<Observation, "observed"> {
  readonly observed: Observation["observed"] | "ABSENT";
  /** Whole reports in a row that lacked it. */
  readonly missing: number;
  /** Since when it has been READY without a break; null while it is not. */
  readonly readySinceMs: number | null;
  readonly observedAtMs: number;
}

/** An execution as the record has it. */
export interface ExecutionRecord {
  readonly id: string;
  readonly job: string;
  readonly version: number;
  readonly index: number;
  readonly nodeId: string;
  readonly desired: Desired;
  readonly generation: bigint;
  readonly specDigest: Buffer;
  readonly ports: Readonly<Record<string, number>>;
  readonly gpuUuids: readonly string[];
  readonly millicores: number;
  readonly memoryBytes: number;
  readonly diskBytes: number;
  /** Whether its resources are still taken off its node. */
  readonly taken: boolean;
  readonly previous: string | null;
  readonly replacedBy: string | null;
  readonly attempt: number;
  readonly restarts: number;
  readonly state: StoredState;
  readonly reason: string;
  readonly message: string;
  /** What an operator wants of it, until the leader has seen to that. */
  readonly order: { readonly kind: ExecutionOrder; readonly actor: string; readonly message: string } | null;
  readonly createdAtMs: number;
  readonly endedAtMs: number | null;
  readonly observation: ObservationRecord | null;
}

/** Read executions with what their nodes say: the query to which callers add which. `e` are executions. */
function selectExecutions() {
  return sql<ExecutionRow>`
    select e.id, e.job, e.version, e.index, e.node_id, e.desired, e.generation, e.spec_digest, e.ports, e.gpu_uuids,
      e.millicores, e.memory_bytes, e.disk_bytes, e.taken, e.previous, e.replaced_by, e.attempt, e.restarts, e.state,
      e.reason, e.message, e.order_kind, e.order_actor, e.order_message, e.created_at, e.ended_at,
      o.epoch, o.report, o.observed, o.started_at as o_started_at, o.ended_at as o_ended_at, o.end_reason,
      o.exit_code, o.signal, o.message as o_message, o.missing, o.ready_at, o.observed_at
    from executions as e
    left join execution_observations as o on o.execution_id = e.id`;
}

/** What has not come to an end, or holds resources still: by id, after one. */
export async function readLiveExecutions(
  db: Db,
  { after, limit }: { readonly after: string; readonly limit: number },
): Promise<readonly ExecutionRecord[]> {
  const { rows } = await sql<ExecutionRow>`
    ${selectExecutions()}
    where (e.taken or e.state in ('PLACED', 'LOST', 'ORPHANED')) and e.id > ${after}
    order by e.id
    limit ${limit}`.execute(db);
  return rows.map(toExecutionRecord);
}

/** Which executions to read; an absent field restricts nothing. */
export interface ExecutionFilter {
  readonly job?: string;
  readonly nodeId?: string;
}

/** Executions, the newest first, below one; null for from the newest on. */
export async function readExecutions(
  db: Db,
  options: { readonly below: string | null; readonly limit: number; readonly filter?: ExecutionFilter },
): Promise<readonly ExecutionRecord[]> {
  const { below, limit, filter: { job, nodeId } = {} } = options;
  const conditions = [
    sql<SqlBool>`true`,
    ...(below === null ? [] : [sql<SqlBool>`e.id < ${below}`]),
    ...(job === undefined ? [] : [sql<SqlBool>`e.job = ${job}`]),
    ...(nodeId === undefined ? [] : [sql<SqlBool>`e.node_id = ${nodeId}`]),
  ];
  const { rows } = await sql<ExecutionRow>`
    ${selectExecutions()}
    where ${sql.join(conditions, sql` and `)}
    order by e.id desc
    limit ${limit}`.execute(db);
  return rows.map(toExecutionRecord);
}

/** These executions; those that are not there are left out. */
export async function getExecutions(db: Db, ids: readonly string[]): Promise<readonly ExecutionRecord[]> {
  if (ids.length === 0) return [];
  const { rows } = await sql<ExecutionRow>`${selectExecutions()} where e.id = any(${ids}) order by e.id`.execute(db);
  return rows.map(toExecutionRecord);
}

/** Executions whose ids begin so, a few at most; an exact id comes alone. */
export async function findExecutions(db: Db, prefix: string, limit: number): Promise<readonly ExecutionRecord[]> {
  const exact = await getExecutions(db, [prefix]);
  if (exact.length > 0) return exact;
  // Ids are of digits and small letters, which come before this character.
  const { rows } = await sql<ExecutionRow>`
    ${selectExecutions()}
    where e.id >= ${prefix} and e.id < ${`${prefix}~`}
    order by e.id
    limit ${limit}`.execute(db);
  return rows.map(toExecutionRecord);
}

/** Executions that were written since a position, or of which a node said something; an execution may come twice. */
export async function readChangedExecutions(
  db: Db,
  { position, after, limit }: { readonly position: ChangePosition; readonly after: string; readonly limit: number },
): Promise<Changes<ExecutionRecord>> {
  const { rows } = await sql<ExecutionRow & { readonly position: string }>`
    select c.*, pg_snapshot_xmin(pg_current_snapshot())::text as position
    from (
      ${selectExecutions()}
      where e.id > ${after} and e.id in (
        select e.id from executions as e where ${changedSince("e", position)}
        union
        select o.execution_id from execution_observations as o where ${changedSince("o", position)}
      )
      order by e.id
      limit ${limit}
    ) as c
    order by c.id`.execute(db);
  return { items: rows.map(toExecutionRecord), position: rows[0]?.position ?? position };
}

/** Executions of a job by what they are. */
export interface ExecutionTally {
  readonly job: string;
  readonly state: StoredState;
  readonly desired: Desired;
  readonly observed: ObservationRecord["observed"] | null;
  /** Whether it is of the job's newest version and was placed since its last restart. */
  readonly current: boolean;
  readonly count: number;
}

/** Count the executions of jobs. */
export async function tallyExecutions(db: Db, jobs: readonly string[]): Promise<readonly ExecutionTally[]> {
  if (jobs.length === 0) return [];
  const { rows } = await sql<Omit<ExecutionTally, "count"> & { readonly count: bigint }>`
    select e.job, e.state, e.desired, o.observed,
      e.spec_digest = j.spec_digest and e.restarts = j.restarts as current, count(*) as count
    from executions as e
    join jobs as j on j.name = e.job
    left join execution_observations as o on o.execution_id = e.id
    where e.job = any(${jobs})
    group by 1, 2, 3, 4, 5`.execute(db);
  return rows.map((row) => ({ ...row, count: Number(row.count) }));
}

/** One execution with its row locked until the transaction ends; null when there is none. */
export async function lockExecution(tx: Tx, id: string): Promise<ExecutionRecord | null> {
  const { rows } = await sql`select from executions where id = ${id} for update`.execute(tx);
  if (rows.length === 0) return null;
  return (await getExecutions(tx, [id]))[0] ?? null;
}

/** Keep what an operator wants of an execution that is locked. */
export async function saveExecutionOrder(
  tx: Tx,
  id: string,
  order: { readonly kind: ExecutionOrder; readonly actor: string; readonly message: string },
): Promise<void> {
  await tx
    .updateTable("executions")
    .set({
      order_kind: order.kind,
      order_actor: order.actor,
      order_message: order.message,
      // Typed as one that Postgres alone writes: this is that.
      ...({ changed: sql`pg_current_xact_id()` } as object),
    })
    .where("id", "=", id)
    .execute();
}

interface ExecutionRow {
  readonly id: string;
  readonly job: string;
  readonly version: number;
  readonly index: number;
  readonly node_id: string;
  readonly desired: Desired;
  readonly generation: bigint;
  readonly spec_digest: Buffer;
  readonly ports: Readonly<Record<string, number>>;
  readonly gpu_uuids: readonly string[];
  readonly millicores: bigint;
  readonly memory_bytes: bigint;
  readonly disk_bytes: bigint;
  readonly taken: boolean;
  readonly previous: string | null;
  readonly replaced_by: string | null;
  readonly attempt: number;
  readonly restarts: number;
  readonly state: StoredState;
  readonly reason: string;
  readonly message: string;
  readonly order_kind: ExecutionOrder | null;
  readonly order_actor: string | null;
  readonly order_message: string | null;
  readonly created_at: Date;
  readonly ended_at: Date | null;
  readonly epoch: bigint | null;
  readonly report: bigint;
  readonly observed: ObservationRecord["observed"];
  readonly o_started_at: Date | null;
  readonly o_ended_at: Date | null;
  readonly end_reason: Observation["end"];
  readonly exit_code: number | null;
  readonly signal: string | null;
  readonly o_message: string;
  readonly missing: number;
  readonly ready_at: Date | null;
  readonly observed_at: Date;
}

function toExecutionRecord(row: ExecutionRow): ExecutionRecord {
  return {
    id: row.id,
    job: row.job,
    version: row.version,
    index: row.index,
    nodeId: row.node_id,
    desired: row.desired,
    generation: row.generation,
    specDigest: row.spec_digest,
    ports: row.ports,
    gpuUuids: row.gpu_uuids,
    millicores: Number(row.millicores),
    memoryBytes: Number(row.memory_bytes),
    diskBytes: Number(row.disk_bytes),
    taken: row.taken,
    previous: row.previous,
    replacedBy: row.replaced_by,
    attempt: row.attempt,
    restarts: row.restarts,
    state: row.state,
    reason: row.reason,
    message: row.message,
    order:
      row.order_kind === null
        ? null
        : { kind: row.order_kind, actor: row.order_actor ?? "", message: row.order_message ?? "" },
    createdAtMs: row.created_at.getTime(),
    endedAtMs: row.ended_at?.getTime() ?? null,
    observation: row.epoch === null ? null : toObservation(row, row.epoch),
  };
}

function toObservation(row: ExecutionRow, epoch: bigint): ObservationRecord {
  return {
    observed: row.observed,
    epoch: Number(epoch),
    report: Number(row.report),
    startedAtMs: row.o_started_at?.getTime() ?? null,
    endedAtMs: row.o_ended_at?.getTime() ?? null,
    end: row.end_reason,
    exitCode: row.exit_code,
    signal: row.signal,
    message: row.o_message,
    missing: row.missing,
    readySinceMs: row.ready_at?.getTime() ?? null,
    observedAtMs: row.observed_at.getTime(),
  };
}
