import { caselessId, type Membership, type NodeRecord, type NodeType } from "@rollcall/domain";
import { type RawBuilder, type SqlBool, sql } from "kysely";
import type { Db, Tx } from "../database/store.ts";
import { newSessionColumns, selectNodes, toNodeRecord } from "./node-rows.ts";

/** What a node is made of when it first registers. Its session row is created with it. */
export interface NewNode {
  readonly id: string;
  readonly type: NodeType;
  /** Since when is taken from the database's clock. */
  readonly membership: Membership;
}

const MAX_MATCHES = 4;
/** What ids are made of, so that anything else matches none. */
const ID_PREFIX = /^[A-Za-z0-9._-]{1,63}$/;

/** One node, or null. */
export async function getNode(db: Db, id: string): Promise<NodeRecord | null> {
  const row = await selectNodes(db).where("n.id", "=", id).executeTakeFirst();
  return row === undefined ? null : toNodeRecord(row);
}

/** Nodes by id, in order of id; those that are not there are left out. */
export async function getNodes(db: Db, ids: readonly string[]): Promise<readonly NodeRecord[]> {
  if (ids.length === 0) return [];
  const rows = await selectNodes(db).where(sql<SqlBool>`n.id = any(${ids}::text[])`).orderBy("n.id").execute();
  return rows.map(toNodeRecord);
}

/** Ids equal to `ref` or starting with it, sorted, at most 4; an exact match is always among them. */
export async function findNodeIds(db: Db, ref: string): Promise<readonly string[]> {
  if (!ID_PREFIX.test(ref)) return [];
  const beyond = `${ref.slice(0, -1)}${String.fromCharCode(ref.charCodeAt(ref.length - 1) + 1)}`;
  const rows = await db
    .selectFrom("nodes")
    .select("id")
    .where("id", ">=", ref)
    .where("id", "<", beyond)
    // An exact match sorts before all that it is a prefix of.
    .orderBy("id")
    .limit(MAX_MATCHES)
    .execute();
  return rows.map(({ id }) => id);
}

/** One node with its row locked until the transaction ends, or null. Lock several nodes in order of id. */
export async function lockNode(tx: Tx, id: string): Promise<NodeRecord | null> {
  const locked = await tx.selectFrom("nodes").select("id").where("id", "=", id).forNoKeyUpdate().executeTakeFirst();
  // A second statement, because the first one's snapshot may be older than the lock it waited for.
  return locked === undefined ? null : getNode(tx, id);
}

/** Several nodes, in order of id, with their rows locked; those that are not there are left out. */
export async function lockNodes(tx: Tx, ids: readonly string[]): Promise<readonly NodeRecord[]> {
  return lockWhere(tx, sql<SqlBool>`id = any(${ids}::text[])`);
}

/** Like `lockNodes`, with those whose ids differ from these in case alone. */
export async function lockAlikeNodes(tx: Tx, ids: readonly string[]): Promise<readonly NodeRecord[]> {
  // Name by name through the index. Otherwise, before the table was analysed, all of it is read for each batch of a
  // storm of new nodes.
  return lockWhere(
    tx,
    sql<SqlBool>`id = any(array(
      select alike.id
      from unnest(${ids.map(caselessId)}::text[]) as wanted (name),
        lateral (select n.id from nodes as n where lower(n.id) = wanted.name offset 0) as alike
    ))`,
  );
}

async function lockWhere(tx: Tx, condition: RawBuilder<SqlBool>): Promise<readonly NodeRecord[]> {
  const locked = await tx.selectFrom("nodes").select("id").where(condition).orderBy("id").forNoKeyUpdate().execute();
  return getNodes(
    tx,
    locked.map(({ id }) => id),
  );
}

/**
 * Several nodes, in order of id, with their rows and those of their sessions locked: nor do connection and detected
 * health change until the transaction ends, and no session opens.
 */
export async function lockWithSessions(tx: Tx, ids: readonly string[]): Promise<readonly NodeRecord[]> {
  // The rows of nodes come before those of their sessions, everywhere.
  await sql`
    select from nodes where id = any(${[...ids]}::text[]) order by id for no key update
  `.execute(tx);
  await sql`
    select from node_sessions where node_id = any(${[...ids]}::text[])
    order by node_id for update`.execute(tx);
  return getNodes(tx, ids);
}

/**
 * Add a node and its session row (DISCONNECTED, UNKNOWN for reason NEVER_CONNECTED). False when the id is taken. Epochs
 * start at 0, or go on from those of a node that had this id before, so that nothing of its sessions can be mistaken.
 */
export async function insertNode(tx: Tx, node: NewNode): Promise<boolean> {
  const { id, type, membership } = node;
  const inserted = await tx
    .insertInto("nodes")
    .values({
      id,
      type,
      membership: membership.state,
      membership_reason: membership.reason,
      membership_message: membership.message,
      membership_actor: membership.actor,
    })
    .onConflict((conflict) => conflict.column("id").doNothing())
    .returning("id")
    .executeTakeFirst();
  if (inserted === undefined) return false;
  await tx
    .insertInto("node_sessions")
    .values({
      node_id: id,
      node_type: type,
      epoch: sql<number>`(select coalesce(max(last_epoch), 0) from node_tombstones where node_id = ${id})`,
      ...newSessionColumns(membership.actor),
    })
    .execute();
  return true;
}

/** Set with every write to a node, so that its etag changes. */
export const TOUCHED = {
  version: sql<number>`version + 1`,
  updated_at: sql<Date>`now()`,
};
