import type { JsonInfo, NodeRecord, NodeType } from "@rollcall/domain";
import { sql } from "kysely";
import type { Db, Tx } from "../database/store.ts";

/** What is left of a node that was removed. */
export interface Tombstone {
  /** Rises with each removal. */
  readonly id: bigint;
  readonly nodeId: string;
  readonly type: NodeType;
  readonly removedAtMs: number;
  readonly actor: string;
  readonly reason: string;
  readonly message: string;
  /** Membership, connection, health, scheduling, mark, labels and key fingerprint as they last were. */
  readonly lastState: JsonInfo;
}

/** The newest tombstone of a node, or null. */
export async function getTombstone(db: Db, nodeId: string): Promise<Tombstone | null> {
  const row = await db
    .selectFrom("node_tombstones")
    .selectAll()
    .where("node_id", "=", nodeId)
    .orderBy("id", "desc")
    .limit(1)
    .executeTakeFirst();
  return row === undefined ? null : toTombstone(row);
}

/** Which tombstones to list. */
export interface TombstonePage {
  /** Only those of this node. */
  readonly nodeId?: string;
  readonly limit: number;
  /** Only those older than the one of this id; null for the newest. */
  readonly before: bigint | null;
}

/** Tombstones, newest first, a page at a time. */
export async function listTombstones(db: Db, { nodeId, limit, before }: TombstonePage): Promise<readonly Tombstone[]> {
  let query = db.selectFrom("node_tombstones").selectAll().orderBy("id", "desc").limit(limit);
  if (before !== null) query = query.where("id", "<", before);
  if (nodeId !== undefined) query = query.where("node_id", "=", nodeId);
  return (await query.execute()).map(toTombstone);
}

/** Those of some nodes that were last removed because they were gone for too long, and not by a decision. */
export async function collectedAmong(db: Db, ids: readonly string[]): Promise<ReadonlySet<string>> {
  const collected = new Set<string>();
  for (const id of ids) {
    const tombstone = await getTombstone(db, id);
    if (tombstone?.reason === "COLLECTED" || tombstone?.reason === "EPHEMERAL_LEFT") {
      collected.add(id);
    }
  }
  return collected;
}

/** Forget tombstones older than `olderThanMs`; how many went. */
export async function pruneTombstones(db: Db, olderThanMs: number): Promise<number> {
  const { numDeletedRows } = await db
    .deleteFrom("node_tombstones")
    .where("removed_at", "<", sql<Date>`now() - ${olderThanMs} * interval '1 millisecond'`)
    .executeTakeFirst();
  return Number(numDeletedRows);
}

/** Write the tombstone of a node that is about to be removed. */
export async function buryNode(
  tx: Tx,
  node: NodeRecord,
  removal: { readonly actor: string; readonly reason: string; readonly message?: string },
): Promise<void> {
  const { id, type, membership, connection, health, scheduling, mark, labels, keyFingerprint } = node;
  // Locked, so that no session opens between this and the removal: its epoch would be used twice.
  const session = await tx
    .selectFrom("node_sessions")
    .select("epoch")
    .where("node_id", "=", id)
    .forUpdate()
    .executeTakeFirst();
  await tx
    .insertInto("node_tombstones")
    .values({
      node_id: id,
      node_type: type,
      actor: removal.actor,
      reason: removal.reason,
      message: removal.message ?? "",
      last_epoch: session?.epoch ?? 0,
      last_state: JSON.stringify({
        membership,
        connection,
        health,
        scheduling,
        mark,
        labels,
        keyFingerprint,
      }),
    })
    .execute();
}

function toTombstone(row: {
  readonly id: bigint;
  readonly node_id: string;
  readonly node_type: NodeType;
  readonly removed_at: Date;
  readonly actor: string;
  readonly reason: string;
  readonly message: string;
  readonly last_state: unknown;
}): Tombstone {
  return {
    id: row.id,
    nodeId: row.node_id,
    type: row.node_type,
    removedAtMs: row.removed_at.getTime(),
    actor: row.actor,
    reason: row.reason,
    message: row.message,
    lastState: row.last_state as JsonInfo,
  };
}
