import type { JsonInfo, Node, NodeType } from "@rollcall/domain";
import { sql } from "kysely";
import type { Db, Tx } from "../database/store.ts";

/** The data kept about a removed node. */
export interface Tombstone {
  /** A sequence number, which increases with each removal. */
  readonly id: bigint;
  readonly nodeId: string;
  readonly type: NodeType;
  readonly removedAtMs: number;
  readonly actor: string;
  readonly reason: string;
  readonly message: string;
  /**
   * The membership, connection, health, scheduling, mark, labels and key fingerprint of the node when it was removed.
   */
  readonly lastState: JsonInfo;
}

/** Get the newest tombstone of a node; null when there is none. */
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
  /** Only tombstones of this node. */
  readonly nodeId?: string;
  readonly limit: number;
  /** Only tombstones older than the one with this id; null starts with the newest. */
  readonly before: bigint | null;
}

/** Read a page of tombstones, newest first. */
export async function listTombstones(db: Db, { nodeId, limit, before }: TombstonePage): Promise<readonly Tombstone[]> {
  let query = db.selectFrom("node_tombstones").selectAll().orderBy("id", "desc").limit(limit);
  if (before !== null) query = query.where("id", "<", before);
  if (nodeId !== undefined) query = query.where("node_id", "=", nodeId);
  return (await query.execute()).map(toTombstone);
}

/** Find which of these nodes were last removed because they were gone for too long, rather than by a decision. */
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

/** Delete tombstones older than `olderThanMs`. Returns how many. */
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
  node: Node,
  removal: { readonly actor: string; readonly reason: string; readonly message?: string },
): Promise<void> {
  const { id, type, membership, connection, health, scheduling, mark, labels, keyFingerprint } = node;
  // Lock the session, so that no session opens before the removal: the epoch of that session would be used twice.
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
