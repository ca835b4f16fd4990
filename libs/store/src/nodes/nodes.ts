import { caselessId, type Hold, type Label, type LabelTier, type Membership, type NodeType } from "@rollcall/domain";
import { type RawBuilder, type SqlBool, sql } from "kysely";
import type { Db, Tx } from "../database/store.ts";
import { dropReaction } from "../sessions/reactions.ts";
import { HARDWARE_OF_ROW, weighReport } from "./hardware.ts";
import { replaceLabels } from "./labels.ts";
import { type InfoSummary, type JsonInfo, type NodeRecord, toNodeRecord } from "./node-record.ts";
import { selectNodes } from "./node-rows.ts";
import { buryNode } from "./tombstones.ts";

/** What a node is made of when it first registers. Its session row is created with it. */
export interface NewNode {
  readonly id: string;
  readonly type: NodeType;
  /** Since when is taken from the database's clock. */
  readonly membership: Membership;
}

/** What a node says about itself. */
export interface InfoReport {
  readonly info: JsonInfo;
  /** Equal digests mean equal reports, labels included. */
  readonly digest: string;
  readonly summary: InfoSummary;
  /** Replaces all labels of the agent tier. */
  readonly agentLabels: Readonly<Record<string, string>>;
}

/** Who removed a node, and why. */
export interface Removal {
  readonly actor: string;
  /** Machine-readable; best that of the event of the same transaction. */
  readonly reason: string;
  /** For people; may be empty. */
  readonly message?: string;
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
  await sql`
    insert into node_sessions (
      node_id, node_type, epoch,
      connection, connection_reason, connection_message, connection_actor,
      health, health_reason, health_message, health_actor
    )
    values (
      ${id}, ${type},
      (select coalesce(max(last_epoch), 0) from node_tombstones where node_id = ${id}),
      'DISCONNECTED', 'NEVER_CONNECTED', '', ${membership.actor},
      'UNKNOWN', 'NEVER_CONNECTED', '', ${membership.actor}
    )`.execute(tx);
  return true;
}

/**
 * Write a membership decision. Since when it holds is the database's. An approval is one of the hardware that the node
 * has now.
 */
export async function saveMembership(tx: Tx, id: string, membership: Membership): Promise<void> {
  await tx
    .updateTable("nodes")
    .set({
      membership: membership.state,
      membership_since: sql<Date>`now()`,
      membership_reason: membership.reason,
      membership_message: membership.message,
      membership_actor: membership.actor,
      ...(membership.state === "APPROVED" ? { approved_hardware: HARDWARE_OF_ROW, missing_hardware: "[]" } : {}),
      ...TOUCHED,
    })
    .where("id", "=", id)
    .execute();
  if (membership.state !== "APPROVED") await dropReaction(tx, id);
}

/** Write the causes for which a node may take no work. */
export async function saveHolds(tx: Tx, id: string, holds: readonly Hold[]): Promise<void> {
  const lifted = sql<Date>`case when holds = '[]'::jsonb then eligible_since else now() end`;
  await tx
    .updateTable("nodes")
    .set({
      holds: JSON.stringify(holds),
      ...(holds.length === 0 ? { eligible_since: lifted } : {}),
      ...TOUCHED,
    })
    .where("id", "=", id)
    .execute();
}

/**
 * What became of a report: it is in the record now, the record says the same but for what moves by itself, or the next
 * one will do.
 */
export type SavedInfo = "saved" | "known" | "later";

/**
 * Write what a node says about itself if it says something new. Memory and disk that move by little say nothing new,
 * and those that move by more do so at most every ten minutes, unless something of what was approved is lost. The
 * caller compares labels, which it has locked, to tell what changed.
 */
export async function saveInfo(tx: Tx, id: string, report: InfoReport): Promise<SavedInfo> {
  const { info, digest, summary, agentLabels } = report;
  const { verdict, columns } = await weighReport(tx, id, info);
  if (verdict !== "save") return verdict;
  const changed = await tx
    .updateTable("nodes")
    .set({
      info: JSON.stringify(info),
      info_digest: digest,
      cores: summary.cores,
      memory_bytes: BigInt(summary.memoryBytes),
      disk_bytes: BigInt(summary.diskBytes),
      gpus: summary.gpus,
      ...columns,
      ...TOUCHED,
    })
    .where("id", "=", id)
    .where((where) => where.or([where("info_digest", "is", null), where("info_digest", "<>", digest)]))
    .returning("id")
    .executeTakeFirst();
  if (changed === undefined) return "known";
  await replaceLabels(tx, id, "agent", toLabels(agentLabels));
  return "saved";
}

/** Replace a node's labels of one tier, all of them. */
export async function saveLabels(tx: Tx, id: string, tier: LabelTier, labels: readonly Label[]): Promise<void> {
  await replaceLabels(tx, id, tier, labels);
  await tx.updateTable("nodes").set(TOUCHED).where("id", "=", id).execute();
}

/** Remove a node with all that belongs to it, leaving a tombstone. */
export async function removeNode(tx: Tx, node: NodeRecord, removal: Removal): Promise<void> {
  await buryNode(tx, node, removal);
  await tx.deleteFrom("nodes").where("id", "=", node.id).execute();
}

/** Set with every write to a node, so that its etag changes. */
export const TOUCHED = {
  version: sql<number>`version + 1`,
  updated_at: sql<Date>`now()`,
};

function toLabels(labels: Readonly<Record<string, string>>): readonly Label[] {
  return Object.entries(labels).map(([key, value]) => ({ key, value, tier: "agent" }));
}
