import type { Desired, DrainIntent, JobType } from "@rollcall/domain";
import { type Selectable, sql } from "kysely";
import type { Db, Tx } from "../database/store.ts";
import type { DrainsTable } from "../database/tables/work.ts";

/** The drain of a node, in progress or finished. */
export interface DrainRow extends DrainIntent {
  readonly nodeId: string;
  /** The deadline by the database's clock; null while the drain waits for other nodes of its selection. */
  readonly deadlineAtMs: number | null;
  /** When the drain was ordered, or last ordered again. */
  readonly startedAtMs: number;
  /** When the drain finished; null while it is in progress. */
  readonly drainedAtMs: number | null;
  /** Whether the drain finished before the node confirmed the end of all executions. */
  readonly unconfirmed: boolean;
}

/** List the drains of these nodes, including finished ones, but not those that wait for other nodes. */
export async function listDrains(db: Db, nodeIds: readonly string[]): Promise<readonly DrainRow[]> {
  return [...(await getDrains(db, nodeIds)).values()].filter(({ queued }) => !queued);
}

/** Get the drain of a node; null when it has none. */
export async function getDrain(db: Db, nodeId: string): Promise<DrainRow | null> {
  return (await getDrains(db, [nodeId])).get(nodeId) ?? null;
}

/** Get the drains of these nodes, keyed by node. Nodes without a drain are left out. */
export async function getDrains(db: Db, nodeIds: readonly string[]): Promise<ReadonlyMap<string, DrainRow>> {
  if (nodeIds.length === 0) return new Map();
  const rows = await db.selectFrom("drains").selectAll().where("node_id", "in", nodeIds).execute();
  return new Map(rows.map((row) => [row.node_id, toDrain(row)]));
}

/** Store a drain, or restart it with other parameters. The caller has locked the node's row. */
export async function saveDrain(tx: Tx, nodeId: string, drain: DrainIntent): Promise<void> {
  const columns = {
    deadline_ms: BigInt(drain.deadlineMs),
    deadline: drain.queued ? null : deadlineFromNow(drain.deadlineMs),
    selection: drain.selection,
    force: drain.force,
    ignore_daemons: drain.ignoreDaemons,
    keep_ineligible: drain.keepIneligible,
    max_parallel: drain.maxParallel,
    reason: drain.reason,
    actor: drain.actor,
  };
  await tx
    .insertInto("drains")
    .values({ node_id: nodeId, ...columns })
    .onConflict((conflict) =>
      conflict
        .constraint("drains_pkey")
        .doUpdateSet({ ...columns, started_at: sql<Date>`now()`, drained_at: null, unconfirmed: false }),
    )
    .execute();
}

/** Delete a drain that was cancelled, or whose node takes work again. */
export async function deleteDrain(tx: Tx, nodeId: string): Promise<void> {
  await tx.deleteFrom("drains").where("node_id", "=", nodeId).execute();
}

/** Lock the unfinished drains of a selection, in a fixed order to avoid deadlocks, and return them. */
export async function lockSelectedDrains(tx: Tx, selection: string): Promise<readonly DrainRow[]> {
  const { rows } = await sql<Selectable<DrainsTable>>`
    select * from drains
    where selection = ${selection} and drained_at is null
    order by node_id
    for update`.execute(tx);
  return rows.map(toDrain);
}

/** Start a drain that waited for other nodes. Its deadline counts from now. */
export async function beginDrain(tx: Tx, { nodeId, deadlineMs }: DrainRow): Promise<void> {
  await tx
    .updateTable("drains")
    .set({ deadline: deadlineFromNow(deadlineMs) })
    .where("node_id", "=", nodeId)
    .execute();
}

/** Record that a drain has finished, and whether its node has confirmed the end of all executions. */
export async function saveDrained(tx: Tx, nodeId: string, isConfirmed: boolean): Promise<void> {
  const columns = { drained_at: sql<Date>`now()`, unconfirmed: !isConfirmed };
  await tx.updateTable("drains").set(columns).where("node_id", "=", nodeId).execute();
}

function deadlineFromNow(deadlineMs: number) {
  return sql<Date>`now() + ${deadlineMs} * interval '1 millisecond'`;
}

function toDrain(row: Selectable<DrainsTable>): DrainRow {
  return {
    nodeId: row.node_id,
    deadlineMs: Number(row.deadline_ms),
    deadlineAtMs: row.deadline?.getTime() ?? null,
    selection: row.selection,
    queued: row.deadline === null,
    force: row.force,
    ignoreDaemons: row.ignore_daemons,
    keepIneligible: row.keep_ineligible,
    maxParallel: row.max_parallel,
    reason: row.reason,
    actor: row.actor,
    startedAtMs: row.started_at.getTime(),
    drainedAtMs: row.drained_at?.getTime() ?? null,
    unconfirmed: row.unconfirmed,
  };
}

/** An execution that a drain waits for. */
export interface DrainingExecution {
  readonly id: string;
  readonly job: string;
  /** The type of the execution's job; null if the store does not have the job. */
  readonly type: JobType | null;
  readonly desired: Desired;
  readonly isLost: boolean;
}

/** Executions that a drain waits for: some of them, and the total number. */
export interface DrainWork {
  readonly executions: readonly DrainingExecution[];
  readonly count: number;
}

/** Read the executions that a node's drain waits for, at most `limit`. */
export async function readDrainWork(
  db: Db,
  { nodeId, ignoreDaemons }: Pick<DrainRow, "nodeId" | "ignoreDaemons">,
  limit: number,
): Promise<DrainWork> {
  const { rows } = await sql<DrainWorkRow>`
    select e.id, e.job, j.type, e.desired, e.state = 'LOST' as "isLost", (count(*) over ())::integer as count
    from executions as e
    left join jobs as j on j.name = e.job
    where e.node_id = ${nodeId} and e.state in ('LIVE', 'LOST')
      and not (${ignoreDaemons} and j.type is not distinct from 'daemon')
    order by e.id
    limit ${limit}`.execute(db);
  return { executions: rows.map(({ count, ...execution }) => execution), count: rows[0]?.count ?? 0 };
}

interface DrainWorkRow extends DrainingExecution {
  readonly count: number;
}
