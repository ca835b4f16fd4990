import { type Selectable, sql } from "kysely";
import type { Db, Tx } from "../database/store.ts";
import type { DrainsTable } from "./work-tables.ts";

/** A node whose work is to move or end, or has. */
export interface StoredDrain {
  readonly nodeId: string;
  /** By the record's clock; null for none. */
  readonly deadlineAtMs: number | null;
  readonly force: boolean;
  readonly ignoreDaemons: boolean;
  readonly keepIneligible: boolean;
  readonly reason: string;
  readonly actor: string;
  readonly startedAtMs: number;
  /** Null while it goes on. */
  readonly drainedAtMs: number | null;
}

/** What an operator wants of a drain. */
export type NewDrain = Omit<StoredDrain, "startedAtMs" | "drainedAtMs" | "deadlineAtMs"> & {
  /** From now, by the record's clock; null for none. */
  readonly deadlineAfterMs: number | null;
};

/** The drains of these nodes, of those that are drained too. */
export async function listDrains(db: Db, nodeIds: readonly string[]): Promise<readonly StoredDrain[]> {
  if (nodeIds.length === 0) return [];
  return (await db.selectFrom("drains").selectAll().where("node_id", "in", nodeIds).execute()).map(toDrain);
}

/** The drain of a node; null for none. */
export async function getDrain(db: Db, nodeId: string): Promise<StoredDrain | null> {
  const row = await db.selectFrom("drains").selectAll().where("node_id", "=", nodeId).executeTakeFirst();
  return row === undefined ? null : toDrain(row);
}

/** Begin a drain, or begin it again with other terms. The node's row is locked. */
export async function saveDrain(tx: Tx, { nodeId, deadlineAfterMs, ...drain }: NewDrain): Promise<StoredDrain> {
  const columns = {
    deadline: sql<Date | null>`now() + ${deadlineAfterMs}::bigint * interval '1 millisecond'`,
    force: drain.force,
    ignore_daemons: drain.ignoreDaemons,
    keep_ineligible: drain.keepIneligible,
    reason: drain.reason,
    actor: drain.actor,
  };
  const row = await tx
    .insertInto("drains")
    .values({ node_id: nodeId, ...columns })
    .onConflict((conflict) =>
      conflict.constraint("drains_pkey").doUpdateSet({ ...columns, started_at: sql<Date>`now()`, drained_at: null }),
    )
    .returningAll()
    .executeTakeFirstOrThrow();
  return toDrain(row);
}

/** Forget a drain: it was cancelled, or the node takes work again. Whether there was one. */
export async function deleteDrain(tx: Tx, nodeId: string): Promise<boolean> {
  const { numDeletedRows } = await tx.deleteFrom("drains").where("node_id", "=", nodeId).executeTakeFirst();
  return numDeletedRows > 0n;
}

function toDrain(row: Selectable<DrainsTable>): StoredDrain {
  return {
    nodeId: row.node_id,
    deadlineAtMs: row.deadline?.getTime() ?? null,
    force: row.force,
    ignoreDaemons: row.ignore_daemons,
    keepIneligible: row.keep_ineligible,
    reason: row.reason,
    actor: row.actor,
    startedAtMs: row.started_at.getTime(),
    drainedAtMs: row.drained_at?.getTime() ?? null,
  };
}
