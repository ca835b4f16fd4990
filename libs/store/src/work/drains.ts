import type { Desired, DrainIntent, JobType } from "@rollcall/domain";
import { type Selectable, sql } from "kysely";
import type { Db, Tx } from "../database/store.ts";
import type { DrainsTable } from "./work-tables.ts";

/** A node whose work is to move or end, or has. */
export interface StoredDrain extends DrainIntent {
  readonly nodeId: string;
  /** By the record's clock; null while it waits for others of its selection. */
  readonly deadlineAtMs: number | null;
  /** When it was ordered, or ordered again. */
  readonly startedAtMs: number;
  /** Null while it goes on. */
  readonly drainedAtMs: number | null;
  /** Whether it is over without its node's confirmation of all ends. */
  readonly unconfirmed: boolean;
}

/** The drains of these nodes, of those that are drained too, but for those that wait for others. */
export async function listDrains(db: Db, nodeIds: readonly string[]): Promise<readonly StoredDrain[]> {
  return [...(await getDrains(db, nodeIds)).values()].filter(({ queued }) => !queued);
}

/** The drain of a node; null for none. */
export async function getDrain(db: Db, nodeId: string): Promise<StoredDrain | null> {
  return (await getDrains(db, [nodeId])).get(nodeId) ?? null;
}

/** Drains by their nodes; nodes without one are left out. */
export async function getDrains(db: Db, nodeIds: readonly string[]): Promise<ReadonlyMap<string, StoredDrain>> {
  if (nodeIds.length === 0) return new Map();
  const rows = await db.selectFrom("drains").selectAll().where("node_id", "in", nodeIds).execute();
  return new Map(rows.map((row) => [row.node_id, toDrain(row)]));
}

/** Write a drain, or begin it again under other conditions. The node's row is locked. */
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

/** Forget a drain: it was cancelled, or the node takes work again. */
export async function deleteDrain(tx: Tx, nodeId: string): Promise<void> {
  await tx.deleteFrom("drains").where("node_id", "=", nodeId).execute();
}

/** The drains of a selection that are not done, their rows locked: in one order, so that no two callers deadlock. */
export async function lockSelectedDrains(tx: Tx, selection: string): Promise<readonly StoredDrain[]> {
  const { rows } = await sql<Selectable<DrainsTable>>`
    select * from drains
    where selection = ${selection} and drained_at is null
    order by node_id
    for update`.execute(tx);
  return rows.map(toDrain);
}

/** Begin a drain that waited: its deadline counts from now. */
export async function beginDrain(tx: Tx, { nodeId, deadlineMs }: StoredDrain): Promise<void> {
  await tx
    .updateTable("drains")
    .set({ deadline: deadlineFromNow(deadlineMs) })
    .where("node_id", "=", nodeId)
    .execute();
}

/** Record that a drain is over, and whether its node has confirmed all ends. */
export async function saveDrained(tx: Tx, nodeId: string, isConfirmed: boolean): Promise<void> {
  const columns = { drained_at: sql<Date>`now()`, unconfirmed: !isConfirmed };
  await tx.updateTable("drains").set(columns).where("node_id", "=", nodeId).execute();
}

function deadlineFromNow(deadlineMs: number) {
  return sql<Date>`now() + ${deadlineMs} * interval '1 millisecond'`;
}

function toDrain(row: Selectable<DrainsTable>): StoredDrain {
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
  /** Null for a job that is not in the record. */
  readonly type: JobType | null;
  readonly desired: Desired;
  readonly isLost: boolean;
}

/** What a drain waits for: some of it, and how much there is. */
export interface DrainWork {
  readonly executions: readonly DrainingExecution[];
  readonly count: number;
}

/** What runs on a node that its drain concerns, as far as is known; `limit` executions at most. */
export async function readDrainWork(
  db: Db,
  { nodeId, ignoreDaemons }: Pick<StoredDrain, "nodeId" | "ignoreDaemons">,
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
