import { caselessId, type Membership, type Node, type NodeType } from "@rollcall/domain";
import { type RawBuilder, type SqlBool, sql } from "kysely";
import type { Db, Tx } from "../database/store.ts";
import { newSessionColumns, selectNodes, toNodeRecord } from "./node-rows.ts";

/** A node at its first registration, which also creates its session row. */
export interface NewNode {
  readonly id: string;
  readonly type: NodeType;
  /** The node's first membership. Its time is ignored, because the database's clock sets the time. */
  readonly membership: Membership;
}

const MAX_MATCHES = 4;
/** The format of a node's id or its prefix. Other strings match no node. */
const ID_PREFIX = /^[A-Za-z0-9._-]{1,63}$/;

/** Get one node; null when it does not exist. */
export async function getNode(db: Db, id: string): Promise<Node | null> {
  const row = await selectNodes(db).where("n.id", "=", id).executeTakeFirst();
  return row === undefined ? null : toNodeRecord(row);
}

/** Get the nodes with these ids, in order of id. Missing nodes are left out. */
export async function getNodes(db: Db, ids: readonly string[]): Promise<readonly Node[]> {
  if (ids.length === 0) return [];
  const rows = await selectNodes(db).where(sql<SqlBool>`n.id = any(${ids}::text[])`).orderBy("n.id").execute();
  return rows.map(toNodeRecord);
}

/** Find the ids that are equal to `ref` or start with it, sorted, at most 4. An exact match is always included. */
export async function findNodeIds(db: Db, ref: string): Promise<readonly string[]> {
  if (!ID_PREFIX.test(ref)) return [];
  const beyond = `${ref.slice(0, -1)}${String.fromCharCode(ref.charCodeAt(ref.length - 1) + 1)}`;
  const rows = await db
    .selectFrom("nodes")
    .select("id")
    .where("id", ">=", ref)
    .where("id", "<", beyond)
    // Sort by id, so that an exact match comes before longer ids that start with `ref`.
    .orderBy("id")
    .limit(MAX_MATCHES)
    .execute();
  return rows.map(({ id }) => id);
}

/**
 * Get one node and lock its row until the transaction ends; null when it does not exist. Lock several nodes in order of
 * id.
 */
export async function lockNode(tx: Tx, id: string): Promise<Node | null> {
  const locked = await tx.selectFrom("nodes").select("id").where("id", "=", id).forNoKeyUpdate().executeTakeFirst();
  // Read the node in a second statement: if the first statement waited for the lock, its snapshot may be older than the
  // last change to the row.
  return locked === undefined ? null : getNode(tx, id);
}

/** Get several nodes, in order of id, and lock their rows. Missing nodes are left out. */
export async function lockNodes(tx: Tx, ids: readonly string[]): Promise<readonly Node[]> {
  return lockWhere(tx, sql<SqlBool>`id = any(${ids}::text[])`);
}

/** Like `lockNodes`, including nodes whose ids differ only in case. */
export async function lockAlikeNodes(tx: Tx, ids: readonly string[]): Promise<readonly Node[]> {
  // Look up each name in the index. A join would scan the whole table in every batch of a mass registration, until
  // Postgres has analysed the table.
  return lockWhere(
    tx,
    sql<SqlBool>`id = any(array(
      select alike.id
      from unnest(${ids.map(caselessId)}::text[]) as wanted (name),
        lateral (select n.id from nodes as n where lower(n.id) = wanted.name offset 0) as alike
    ))`,
  );
}

async function lockWhere(tx: Tx, condition: RawBuilder<SqlBool>): Promise<readonly Node[]> {
  const locked = await tx.selectFrom("nodes").select("id").where(condition).orderBy("id").forNoKeyUpdate().execute();
  return getNodes(
    tx,
    locked.map(({ id }) => id),
  );
}

/**
 * Get several nodes, in order of id, and lock their rows and the rows of their sessions. Until the transaction ends,
 * their connection and detected health do not change, and no session opens.
 */
export async function lockWithSessions(tx: Tx, ids: readonly string[]): Promise<readonly Node[]> {
  // Lock the rows of nodes before the rows of sessions, as all transactions do.
  await sql`
    select from nodes where id = any(${[...ids]}::text[]) order by id for no key update
  `.execute(tx);
  await sql`
    select from node_sessions where node_id = any(${[...ids]}::text[])
    order by node_id for update`.execute(tx);
  return getNodes(tx, ids);
}

/**
 * Add a node and its session row (DISCONNECTED, UNKNOWN for reason NEVER_CONNECTED). Returns false when the id is
 * taken. Epochs start at 0. If an earlier node had this id, epochs continue from that node's, so that sessions of the
 * two nodes cannot be confused.
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

/** Columns to set in every write to a node, so that its etag changes. */
export const TOUCHED = {
  version: sql<number>`version + 1`,
  updated_at: sql<Date>`now()`,
};
