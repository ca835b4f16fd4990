import { type Desired, EXECUTION_ID_PATTERN, type ExecutionRecord, type Observation } from "@rollcall/domain";
import { refusalError } from "@rollcall/errors";
import { type RawBuilder, type Selectable, type SqlBool, sql } from "kysely";
import { withSuggestion } from "../database/near-names.ts";
import type { Db, Tx } from "../database/store.ts";
import { type ChangePosition, type Changes, changedSince } from "./changes.ts";
import type { ExecutionObservationsTable, ExecutionOrder, ExecutionsTable, StoredState } from "./work-tables.ts";

/** What a node said last of an execution, with what the record adds. */
export interface StoredObservation extends Omit<Observation, "observed"> {
  /** ABSENT of one that its node has never named, and lacks. */
  readonly observed: Observation["observed"] | "ABSENT";
  /** Whole reports in a row that lacked it. */
  readonly missing: number;
  /** Since when it has been READY without a break; null while it is not. */
  readonly readySinceMs: number | null;
  readonly observedAtMs: number;
}

/** An execution as the record has it. */
export interface StoredExecution {
  /** What the scheduler writes. */
  readonly execution: ExecutionRecord;
  /** Whether a node runs it and the record did not know it; then it is LIVE, and no job has it. */
  readonly isOrphan: boolean;
  readonly specDigest: Buffer;
  /** What an operator wants of it, until the leader has seen to that. */
  readonly order: { readonly kind: ExecutionOrder; readonly actor: string; readonly message: string } | null;
  readonly observation: StoredObservation | null;
  /** Whether its node is there, and HEALTHY. */
  readonly isNodeWell: boolean;
}

const NODE_IS_WELL = sql`(s.health = 'HEALTHY' and not s.marked)`;

/** Read executions with what their nodes say: the query to which callers add which. `e` are executions. */
function selectExecutions() {
  return sql<ExecutionRow>`
    select e.id, e.job, e.version, e.run, e.index, e.node_id, e.desired, e.spec_digest, e.ports, e.gpu_uuids,
      e.millicores, e.memory_bytes, e.disk_bytes, e.holds, e.previous, e.replaced_by, e.attempt, e.state, e.reason,
      e.message,
      e.order_kind, e.order_actor, e.order_message, e.created_at, e.lost_at, e.ended_at,
      o.epoch, o.report, o.observed, o.started_at as o_started_at, o.ended_at as o_ended_at, o.end_reason,
      o.exit_code, o.signal, o.message as o_message, o.missing, o.ready_at, o.observed_at,
      coalesce(${NODE_IS_WELL}, false) as is_node_well
    from executions as e
    left join execution_observations as o on o.execution_id = e.id
    left join node_sessions as s on s.node_id = e.node_id`;
}

async function queryExecutions(db: Db, which: RawBuilder<unknown>): Promise<readonly StoredExecution[]> {
  const { rows } = await sql<ExecutionRow>`${selectExecutions()} ${which}`.execute(db);
  return rows.map(toStoredExecution);
}

/** What has not come to an end, or holds resources still: by id, after one. */
export async function readLiveExecutions(
  db: Db,
  { after, limit }: { readonly after: string; readonly limit: number },
): Promise<readonly StoredExecution[]> {
  return queryExecutions(
    db,
    sql`
    where (e.holds or e.state in ('LIVE', 'LOST', 'ORPHANED')) and e.id > ${after}
    order by e.id
    limit ${limit}`,
  );
}

/** What has not come to an end on nodes, as far as it is not lost: by id, after one. */
export async function readLiveOnNodes(
  db: Db,
  options: { readonly nodeIds: readonly string[]; readonly after: string; readonly limit: number },
): Promise<readonly StoredExecution[]> {
  const { nodeIds, after, limit } = options;
  return queryExecutions(
    db,
    sql`
    where e.node_id = any(${nodeIds}) and e.state = 'LIVE' and e.id > ${after}
    order by e.id
    limit ${limit}`,
  );
}

/** Of jobs that are ACTIVE, the newest execution of each place that has ended and holds nothing: by id, after one. */
export async function readNewestEnded(
  db: Db,
  { after, limit }: { readonly after: string; readonly limit: number },
): Promise<readonly StoredExecution[]> {
  return queryExecutions(
    db,
    sql`
    where e.id in (
      select newest.id
      from jobs as j
      cross join lateral (
        select distinct on (x.index) x.id, x.holds, x.state
        from executions as x
        -- Orphans have version 0, and no place.
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

/** What orders the executions of a place: isNewer() of the domain says why. */
export function newness(table: string): RawBuilder<unknown> {
  const [run, id] = [sql.ref(`${table}.run`), sql.ref(`${table}.id`)];
  return sql`(${run}, ${id} ~ ${ID_FORM}, ${id})`;
}

const ID_FORM = sql.lit(EXECUTION_ID_PATTERN.source);

/** The greatest id that a scheduler made; "" for none. An orphan has an id that its node named. */
export async function greatestExecutionId(db: Db): Promise<string> {
  const { rows } = await sql<{ readonly id: string }>`
    select id from executions where version > 0 and id ~ ${ID_FORM} order by id desc limit 1`.execute(db);
  return rows[0]?.id ?? "";
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
): Promise<readonly StoredExecution[]> {
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

/** These executions; those that are not there are left out. */
export async function getExecutions(db: Db, ids: readonly string[]): Promise<readonly StoredExecution[]> {
  if (ids.length === 0) return [];
  return queryExecutions(db, sql`where e.id = any(${ids}) order by e.id`);
}

/** The refusal of an id that no execution has, with the execution that was most likely meant. */
export async function executionNotFound(db: Db, id: string): Promise<Error> {
  const message = `there is no execution ${id}`;
  const missing = { reason: "EXECUTION_NOT_FOUND", message, metadata: { execution: id } } as const;
  return refusalError(await withSuggestion(db, "execution", id, missing), id);
}

/**
 * Executions whose ids begin so, a few at most; an exact id comes alone. Only for what people read: a change must not
 * depend on which other executions exist.
 */
export async function findExecutions(db: Db, prefix: string, limit: number): Promise<readonly StoredExecution[]> {
  const exact = await getExecutions(db, [prefix]);
  if (exact.length > 0) return exact;
  // Ids are of digits and small letters, which come before this character.
  return queryExecutions(
    db,
    sql`
    where e.id >= ${prefix} and e.id < ${`${prefix}~`}
    order by e.id
    limit ${limit}`,
  );
}

/**
 * Executions that were written since a position, or of which a node said something, by id after one; an execution may
 * come twice. The position of the first page is where the next read begins.
 */
export async function readChangedExecutions(
  db: Db,
  { position, after, limit }: { readonly position: ChangePosition; readonly after: string; readonly limit: number },
): Promise<Changes<StoredExecution>> {
  const { rows } = await sql<ExecutionRow & { readonly position: string }>`
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
  return { items: rows.map(toStoredExecution), position: rows[0]?.position ?? position };
}

/** Executions of a job by what they are. */
export interface ExecutionTally {
  readonly job: string;
  readonly state: StoredState;
  readonly desired: Desired;
  readonly observed: StoredObservation["observed"] | null;
  /** Whether it is of the job's newest version and its present run. */
  readonly current: boolean;
  /** Whether its node is there, and HEALTHY. */
  readonly nodeWell: boolean;
  /** Whether another has taken its place. */
  readonly replaced: boolean;
  readonly count: number;
}

/** Count the executions of jobs. */
export async function tallyExecutions(db: Db, jobs: readonly string[]): Promise<readonly ExecutionTally[]> {
  if (jobs.length === 0) return [];
  const { rows } = await sql<Omit<ExecutionTally, "count"> & { readonly count: bigint }>`
    select e.job, e.state, e.desired, o.observed,
      (e.version = j.version or e.version = any(j.same_versions)) and e.run >= j.run as current,
      e.replaced_by is not null as replaced, coalesce(${NODE_IS_WELL}, false) as "nodeWell", count(*) as count
    from executions as e
    join jobs as j on j.name = e.job
    left join execution_observations as o on o.execution_id = e.id
    left join node_sessions as s on s.node_id = e.node_id
    where e.job = any(${jobs})
    group by 1, 2, 3, 4, 5, 6, 7`.execute(db);
  return rows.map((row) => ({ ...row, count: Number(row.count) }));
}

/** The least number within a job that no execution has which should run. */
export async function freeIndex(db: Db, job: string): Promise<number> {
  const { rows } = await sql<{ readonly index: number }>`
    with used as (
      select distinct index from executions
      where job = ${job} and state in ('LIVE', 'LOST') and desired = 'RUN'
    )
    select min(n) as index
    from generate_series(0, (select count(*)::integer from used)) as n
    where n not in (select index from used)`.execute(db);
  return rows[0]?.index ?? 0;
}

/** The places among which one for an adopted execution is chosen. */
export interface PlacesOfJob {
  readonly name: string;
  readonly count: number;
  /** Whether executions have to pass a check before they can be used. */
  readonly checked: boolean;
  /** Whether what has completed in a run is not run again in it. */
  readonly once: boolean;
  readonly run: number;
}

/**
 * The least number within a job, below its count, that no execution has which should run; or else one whose execution
 * cannot be used yet, or no longer; or else the least.
 */
export async function indexToAdopt(db: Db, places: PlacesOfJob): Promise<number> {
  const { name, count, checked, once, run } = places;
  const { rows } = await sql<{ readonly index: number }>`
    with used as (
      select e.index, bool_or(
        e.state = 'COMPLETED'
          or (e.state = 'LIVE' and (o.observed = 'READY' or (not ${checked} and o.observed = 'RUNNING')) is true)
      ) as usable
      from executions as e
      left join execution_observations as o on o.execution_id = e.id
      where e.job = ${name} and (
        (e.state in ('LIVE', 'LOST') and e.desired = 'RUN' and e.replaced_by is null)
        or (${once} and e.state = 'COMPLETED' and e.run >= ${run})
      )
      group by e.index
    )
    select n as index
    from generate_series(0, ${count}::integer - 1) as n
    left join used as u on u.index = n
    order by u.index is not null, u.usable, n
    limit 1`.execute(db);
  return rows[0]?.index ?? 0;
}

/** One execution with its row locked until the transaction ends; null when there is none. */
export async function lockExecution(tx: Tx, id: string): Promise<StoredExecution | null> {
  const { rows } = await sql`select from executions where id = ${id} for update`.execute(tx);
  if (rows.length === 0) return null;
  return (await getExecutions(tx, [id]))[0] ?? null;
}

/** Keep what an operator wants of an execution that is locked. */
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

/** An execution with what its node says of it, whose columns are null where that is nothing: `epoch` tells. */
interface ExecutionRow extends ExecutionColumns, ObservationColumns {
  readonly epoch: bigint | null;
  readonly o_started_at: Date | null;
  readonly o_ended_at: Date | null;
  readonly o_message: string;
  readonly is_node_well: boolean;
}

function toStoredExecution(row: ExecutionRow): StoredExecution {
  return {
    execution: toRecord(row),
    isOrphan: row.state === "ORPHANED",
    specDigest: row.spec_digest,
    order:
      row.order_kind === null
        ? null
        : { kind: row.order_kind, actor: row.order_actor ?? "", message: row.order_message ?? "" },
    observation: row.epoch === null ? null : toObservation(row, row.epoch),
    isNodeWell: row.is_node_well,
  };
}

function toRecord(row: ExecutionRow): ExecutionRecord {
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

function toObservation(row: ExecutionRow, epoch: bigint): StoredObservation {
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
