import { type Desired, EXECUTION_ID_PATTERN, type Execution, type Observation } from "@rollcall/domain";
import { refusalError } from "@rollcall/errors";
import { type RawBuilder, type Selectable, type SqlBool, sql } from "kysely";
import { withSuggestion } from "../database/near-names.ts";
import type { Db, Tx } from "../database/store.ts";
import type {
  ExecutionObservationsTable,
  ExecutionOrder,
  ExecutionRowState,
  ExecutionsTable,
} from "../database/tables/work.ts";
import { type ChangePosition, type Changes, changedSince } from "./changes.ts";

/** A node's last report about an execution, and what the store derives from reports. */
export interface ObservationRow extends Omit<Observation, "observed"> {
  /**
   * The last report about the execution; ABSENT if complete reports lack the execution and the node has never reported
   * it.
   */
  readonly observed: Observation["observed"] | "ABSENT";
  /** How many consecutive complete reports lacked the execution. */
  readonly missing: number;
  /** Since when the execution has been READY without interruption; null while it is not READY. */
  readonly readySinceMs: number | null;
  readonly observedAtMs: number;
}

/** An execution as stored. */
export interface ExecutionRow {
  /** The fields that the scheduler writes. */
  readonly execution: Execution;
  /**
   * Whether the store did not know the execution when a node reported it as running. Such an orphan is LIVE and
   * belongs to no job.
   */
  readonly isOrphan: boolean;
  readonly specDigest: Buffer;
  /** An operator's order for the execution, until the leader has handled it; null for none. */
  readonly order: { readonly kind: ExecutionOrder; readonly actor: string; readonly message: string } | null;
  /**
   * When the scheduler ordered the execution to stop, by the store's clock; null without an order, or if the time is
   * unknown.
   */
  readonly stopOrderedAtMs: number | null;
  readonly observation: ObservationRow | null;
  /** Whether the execution's node is HEALTHY and not marked. */
  readonly isNodeHealthy: boolean;
}

const NODE_IS_HEALTHY = sql`(s.health = 'HEALTHY' and not s.marked)`;

/** The query for executions, in a table named `e`, with their nodes' reports. Callers add conditions. */
function selectExecutions() {
  return sql<RawExecutionRow>`
    select e.id, e.job, e.version, e.run, e.index, e.node_id, e.desired, e.spec_digest, e.ports, e.gpu_uuids,
      e.millicores, e.memory_bytes, e.disk_bytes, e.holds, e.previous, e.replaced_by, e.attempt, e.state, e.reason,
      e.message, e.order_kind, e.order_actor, e.order_message, e.created_at, e.lost_at, e.ended_at, e.stop_ordered_at,
      o.epoch, o.report, o.observed, o.started_at as o_started_at, o.ended_at as o_ended_at, o.end_reason,
      o.exit_code, o.signal, o.message as o_message, o.missing, o.ready_at, o.observed_at,
      coalesce(${NODE_IS_HEALTHY}, false) as is_node_well
    from executions as e
    left join execution_observations as o on o.execution_id = e.id
    left join node_sessions as s on s.node_id = e.node_id`;
}

async function queryExecutions(db: Db, which: RawBuilder<unknown>): Promise<readonly ExecutionRow[]> {
  const { rows } = await sql<RawExecutionRow>`${selectExecutions()} ${which}`.execute(db);
  return rows.map(toExecutionRow);
}

/** Read executions that have not ended or still hold resources, in order of id, starting after the given id. */
export async function readLiveExecutions(
  db: Db,
  { after, limit }: { readonly after: string; readonly limit: number },
): Promise<readonly ExecutionRow[]> {
  return queryExecutions(
    db,
    sql`
    where (e.holds or e.state in ('LIVE', 'LOST', 'ORPHANED')) and e.id > ${after}
    order by e.id
    limit ${limit}`,
  );
}

/** Read the LIVE executions of these nodes that are not lost, in order of id, starting after the given id. */
export async function readLiveOnNodes(
  db: Db,
  options: { readonly nodeIds: readonly string[]; readonly after: string; readonly limit: number },
): Promise<readonly ExecutionRow[]> {
  const { nodeIds, after, limit } = options;
  return queryExecutions(
    db,
    sql`
    where e.node_id = any(${nodeIds}) and e.state = 'LIVE' and e.id > ${after}
    order by e.id
    limit ${limit}`,
  );
}

/**
 * For each replica index of the ACTIVE jobs, read the newest execution if it has ended and holds nothing. The
 * executions are in order of id, starting after the given id.
 */
export async function readNewestEnded(
  db: Db,
  { after, limit }: { readonly after: string; readonly limit: number },
): Promise<readonly ExecutionRow[]> {
  return queryExecutions(
    db,
    sql`
    where e.id in (
      select newest.id
      from jobs as j
      cross join lateral (
        select distinct on (x.index) x.id, x.holds, x.state
        from executions as x
        -- Orphans have version 0, and no replica index.
        where x.job = j.name and x.version > 0
        order by x.index, ${newness("x")} desc
      ) as newest
      where j.state = 'ACTIVE' and not newest.holds and newest.state not in ('LIVE', 'LOST', 'ORPHANED')
        and newest.id > ${after}
      order by newest.id
      limit ${limit}
    )
    order by e.id`,
  );
}

/**
 * An expression that sorts the executions of a replica index from old to new. See isNewer() of the domain for the
 * reason.
 */
export function newness(table: string): RawBuilder<unknown> {
  const [run, id] = [sql.ref(`${table}.run`), sql.ref(`${table}.id`)];
  return sql`(${run}, ${id} ~ ${ID_FORM}, ${id})`;
}

const ID_FORM = sql.lit(EXECUTION_ID_PATTERN.source);

/**
 * Read the greatest id that a scheduler has created; "" for none. Ids of orphans, which come from nodes, do not count.
 */
export async function greatestExecutionId(db: Db): Promise<string> {
  const { rows } = await sql<{ readonly id: string }>`
    select id from executions where version > 0 and id ~ ${ID_FORM} order by id desc limit 1`.execute(db);
  return rows[0]?.id ?? "";
}

/** Which executions to read; an absent field filters nothing. */
export interface ExecutionFilter {
  readonly job?: string;
  readonly nodeId?: string;
}

/** Read executions with ids below the given one, newest first; null starts with the newest. */
export async function readExecutions(
  db: Db,
  options: { readonly below: string | null; readonly limit: number; readonly filter?: ExecutionFilter },
): Promise<readonly ExecutionRow[]> {
  const { below, limit, filter: { job, nodeId } = {} } = options;
  const conditions = [
    sql<SqlBool>`true`,
    ...(below === null ? [] : [sql<SqlBool>`e.id < ${below}`]),
    ...(job === undefined ? [] : [sql<SqlBool>`e.job = ${job}`]),
    ...(nodeId === undefined ? [] : [sql<SqlBool>`e.node_id = ${nodeId}`]),
  ];
  return queryExecutions(
    db,
    sql`
    where ${sql.join(conditions, sql` and `)}
    order by e.id desc
    limit ${limit}`,
  );
}

/** Read these executions. Missing executions are left out. */
export async function getExecutions(db: Db, ids: readonly string[]): Promise<readonly ExecutionRow[]> {
  if (ids.length === 0) return [];
  return queryExecutions(db, sql`where e.id = any(${ids}) order by e.id`);
}

/** The error for an unknown execution id, with the most similar existing id. */
export async function executionNotFound(db: Db, id: string): Promise<Error> {
  const message = `execution ${id} not found`;
  const missing = { reason: "EXECUTION_NOT_FOUND", message, metadata: { execution: id } } as const;
  return refusalError(await withSuggestion(db, "execution", id, missing), id);
}

/** Find up to `limit` executions whose ids start with a prefix, or only the one with this id. For reads by people. */
export async function findExecutions(db: Db, prefix: string, limit: number): Promise<readonly ExecutionRow[]> {
  const exact = await getExecutions(db, [prefix]);
  if (exact.length > 0) return exact;
  // Use "~" as the upper end, because ids consist of digits and lower-case letters, which sort before it.
  return queryExecutions(
    db,
    sql`
    where e.id >= ${prefix} and e.id < ${`${prefix}~`}
    order by e.id
    limit ${limit}`,
  );
}

/**
 * Read executions that were written or reported on since a position, in order of id, starting after the given id. An
 * execution can appear twice. To read later changes, start at the position of the first page.
 */
export async function readChangedExecutions(
  db: Db,
  { position, after, limit }: { readonly position: ChangePosition; readonly after: string; readonly limit: number },
): Promise<Changes<ExecutionRow>> {
  const { rows } = await sql<RawExecutionRow & { readonly position: string }>`
    select c.*, pg_snapshot_xmin(pg_current_snapshot())::text as position
    from (
      ${selectExecutions()}
      where e.id > ${after} and e.id in (
        select w.id from executions as w where ${changedSince("w", position)}
        union
        select x.execution_id from execution_observations as x where ${changedSince("x", position)}
      )
      order by e.id
      limit ${limit}
    ) as c
    order by c.id`.execute(db);
  return { items: rows.map(toExecutionRow), position: rows[0]?.position ?? position };
}

/** The number of a job's executions that share all these states. */
export interface ExecutionTally {
  readonly job: string;
  readonly state: ExecutionRowState;
  readonly desired: Desired;
  readonly observed: ObservationRow["observed"] | null;
  /** Whether these executions belong to the job's newest version and current run. */
  readonly current: boolean;
  /** Whether the nodes of these executions are HEALTHY and not marked. */
  readonly nodeHealthy: boolean;
  /** Whether other executions have replaced these executions. */
  readonly replaced: boolean;
  readonly count: number;
}

/** Count the executions of jobs by their states. */
export async function tallyExecutions(db: Db, jobs: readonly string[]): Promise<readonly ExecutionTally[]> {
  if (jobs.length === 0) return [];
  const { rows } = await sql<Omit<ExecutionTally, "count"> & { readonly count: bigint }>`
    select e.job, e.state, e.desired, o.observed,
      (e.version = j.version or e.version = any(j.same_versions)) and e.run >= j.run as current,
      e.replaced_by is not null as replaced, coalesce(${NODE_IS_HEALTHY}, false) as "nodeHealthy", count(*) as count
    from executions as e
    join jobs as j on j.name = e.job
    left join execution_observations as o on o.execution_id = e.id
    left join node_sessions as s on s.node_id = e.node_id
    where e.job = any(${jobs})
    group by 1, 2, 3, 4, 5, 6, 7`.execute(db);
  return rows.map((row) => ({ ...row, count: Number(row.count) }));
}

/** Read the executions of a job that are live, lost or completed. The kept number of completed ones bounds them. */
export async function readExecutionsOfJob(db: Db, job: string): Promise<readonly ExecutionRow[]> {
  return queryExecutions(db, sql`where e.job = ${job} and e.state in ('LIVE', 'LOST', 'COMPLETED') order by e.id`);
}

/** Get one execution and lock its row until the transaction ends; null when it does not exist. */
export async function lockExecution(tx: Tx, id: string): Promise<ExecutionRow | null> {
  const { rows } = await sql`select from executions where id = ${id} for update`.execute(tx);
  if (rows.length === 0) return null;
  return (await getExecutions(tx, [id]))[0] ?? null;
}

/** Store an operator's order for a locked execution. */
export async function saveExecutionOrder(
  tx: Tx,
  id: string,
  { kind, actor, message }: { readonly kind: ExecutionOrder; readonly actor: string; readonly message: string },
): Promise<void> {
  await sql`
    update executions
    set order_kind = ${kind}, order_actor = ${actor}, order_message = ${message}, changed = pg_current_xact_id()
    where id = ${id}`.execute(tx);
}

type ExecutionColumns = Omit<Selectable<ExecutionsTable>, "generation" | "changed">;

type ObservationColumns = Pick<
  Selectable<ExecutionObservationsTable>,
  "report" | "observed" | "end_reason" | "exit_code" | "signal" | "missing" | "ready_at" | "observed_at"
>;

/** An execution with its node's report. If there is no report, `epoch` and the report's other columns are null. */
interface RawExecutionRow extends ExecutionColumns, ObservationColumns {
  readonly epoch: bigint | null;
  readonly o_started_at: Date | null;
  readonly o_ended_at: Date | null;
  readonly o_message: string;
  readonly is_node_well: boolean;
}

function toExecutionRow(row: RawExecutionRow): ExecutionRow {
  return {
    execution: toRecord(row),
    isOrphan: row.state === "ORPHANED",
    specDigest: row.spec_digest,
    order:
      row.order_kind === null
        ? null
        : { kind: row.order_kind, actor: row.order_actor ?? "", message: row.order_message ?? "" },
    stopOrderedAtMs: row.stop_ordered_at?.getTime() ?? null,
    observation: row.epoch === null ? null : toObservation(row, row.epoch),
    isNodeHealthy: row.is_node_well,
  };
}

function toRecord(row: RawExecutionRow): Execution {
  return {
    id: row.id,
    job: row.job,
    version: row.version,
    run: row.run,
    index: row.index,
    nodeId: row.node_id,
    desired: row.desired,
    grant: {
      millicores: Number(row.millicores),
      memoryBytes: Number(row.memory_bytes),
      diskBytes: Number(row.disk_bytes),
      ports: row.ports,
      gpuUuids: row.gpu_uuids,
    },
    holds: row.holds,
    previous: row.previous,
    replacedBy: row.replaced_by,
    attempt: row.attempt,
    state: row.state === "ORPHANED" ? "LIVE" : row.state,
    reason: row.reason,
    message: row.message,
    createdAtMs: row.created_at.getTime(),
    lostAtMs: row.lost_at?.getTime() ?? null,
    endedAtMs: row.ended_at?.getTime() ?? null,
  };
}

function toObservation(row: RawExecutionRow, epoch: bigint): ObservationRow {
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
