import { createHash } from "node:crypto";
import { type SqlBool, sql } from "kysely";
import { rowsFrom } from "../database/batches.ts";
import { together } from "../database/one-connection.ts";
import { PREPARED } from "../database/pool.ts";
import type { Db, Tx } from "../database/store.ts";

/** A token by which machines join, without its secret. */
export interface JoinToken {
  readonly id: string;
  /** Rises with each token. */
  readonly number: bigint;
  readonly description: string;
  /** Machines that it admits at most; null for any number. */
  readonly maxUses: number | null;
  /** Machines that it has admitted. */
  readonly uses: number;
  /** Null before the first use. */
  readonly lastUsedAtMs: number | null;
  /** Null for a token that never expires. */
  readonly expiresAtMs: number | null;
  /** By the database's clock, so that every replica judges alike. */
  readonly isExpired: boolean;
  /** Which names it admits; empty for any. */
  readonly nodeNamePattern: string;
  /** Granted to each node that joins with it. */
  readonly labels: Readonly<Record<string, string>>;
  readonly preauthorized: boolean;
  readonly ephemeral: boolean;
  readonly createdAtMs: number;
  readonly createdBy: string;
  /** Null for a token that is not revoked. */
  readonly revocation: JoinTokenRevocation | null;
}

/** Who revoked a token, why and when. */
export interface JoinTokenRevocation {
  readonly atMs: number;
  readonly actor: string;
  /** In the operator's words; may be empty. */
  readonly reason: string;
}

/** A token to keep. */
export interface NewJoinToken
  extends Pick<
    JoinToken,
    "id" | "description" | "maxUses" | "nodeNamePattern" | "labels" | "preauthorized" | "ephemeral" | "createdBy"
  > {
  /** SHA-256 of the whole text, 32 bytes. */
  readonly hash: Uint8Array;
  /** Its life in milliseconds; null for ever. */
  readonly ttlMs: number | null;
}

/**
 * A token whose row is locked, with what proves that a machine has its text. Uses of an unlimited one are not counted:
 * 0.
 */
export interface LockedJoinToken extends JoinToken {
  readonly hash: Uint8Array;
}

/** One machine that a token admitted. */
export interface JoinTokenUse {
  readonly tokenId: string;
  readonly nodeId: string;
  readonly fingerprint: string;
}

/** A use, and when it was. */
export interface PastUse extends Omit<JoinTokenUse, "tokenId"> {
  readonly atMs: number;
}

/** The hash under which a join token is kept: SHA-256 of its whole text, 32 bytes. Its secret is random and long. */
export function joinTokenHash(text: string): Buffer {
  return createHash("sha256").update(text, "utf8").digest();
}

/** Keep a token. Since when it is kept, and until when, is the database's. */
export async function insertJoinToken(tx: Tx, token: NewJoinToken): Promise<JoinToken> {
  const { id, ttlMs } = token;
  await tx
    .insertInto("join_tokens")
    .values({
      id,
      hash: Buffer.from(token.hash),
      description: token.description,
      max_uses: token.maxUses,
      expires_at: ttlMs === null ? null : sql<Date>`now() + ${ttlMs}::bigint * interval '1 millisecond'`,
      node_name_pattern: token.nodeNamePattern,
      labels: JSON.stringify(token.labels),
      preauthorized: token.preauthorized,
      ephemeral: token.ephemeral,
      created_by: token.createdBy,
    })
    .execute();
  const kept = await getJoinToken(tx, id);
  if (kept === null) throw new Error(`join token ${id} is gone as it is made`);
  return kept;
}

/** One token, or null. */
export async function getJoinToken(db: Db, id: string): Promise<JoinToken | null> {
  const row = await selectTokens(db).where("t.id", "=", id).executeTakeFirst();
  return row === undefined ? null : toJoinToken(row);
}

/** Which tokens to list. */
export interface JoinTokenPage {
  readonly limit: number;
  /** Only those before this number; null begins with the newest. */
  readonly before: bigint | null;
}

/** Tokens, the newest first. */
export async function listJoinTokens(db: Db, { limit, before }: JoinTokenPage): Promise<readonly JoinToken[]> {
  let query = selectTokens(db).orderBy("t.number", "desc").limit(limit);
  if (before !== null) query = query.where("t.number", "<", before);
  return (await query.execute()).map(toJoinToken);
}

/** One token with its row locked until the transaction ends, or null. */
export async function lockJoinToken(tx: Tx, id: string): Promise<JoinToken | null> {
  const locked = await tx
    .selectFrom("join_tokens")
    .select("id")
    .where("id", "=", id)
    .forNoKeyUpdate()
    .executeTakeFirst();
  // A second statement, because the first one's snapshot may be older than the lock it waited for.
  return locked === undefined ? null : getJoinToken(tx, id);
}

/**
 * The tokens of these ids with their rows locked, by id: one of limited uses for this transaction alone, so that no
 * other counts at the same time; the others only against revocation, so that any number of registries admit by them at
 * once. Comes before nodes are locked. Limited ones are locked first, each kind in order of id: two transactions never
 * wait for each other in a circle.
 */
export async function lockJoinTokens(tx: Tx, ids: readonly string[]): Promise<ReadonlyMap<string, LockedJoinToken>> {
  if (ids.length === 0) return new Map();
  const locking = sql<{ id: string }>`${PREPARED}
    with limited as materialized (
      select id from join_tokens
      where id = any(${ids}::text[]) and max_uses is not null
      order by id for no key update
    ), unlimited as materialized (
      select id from join_tokens
      where id = any(${ids}::text[]) and max_uses is null
      order by id for share
    )
    select id from limited union all select id from unlimited`.execute(tx);
  const reading = selectTokens(tx, "limited")
    .select("t.hash")
    .where(sql<SqlBool>`t.id = any(${ids}::text[])`)
    .execute();
  const [locked, rows] = await together([locking, reading]);
  // A token created between the two statements is not locked.
  const lockedIds = new Set(locked.rows.map(({ id }) => id));
  const kept = rows.filter(({ id }) => lockedIds.has(id));
  return new Map(kept.map((row) => [row.id, { ...toJoinToken(row), hash: row.hash }]));
}

/** Count the machines that locked tokens admitted, each once. */
export async function saveJoinTokenUses(tx: Tx, uses: readonly JoinTokenUse[]): Promise<void> {
  if (uses.length === 0) return;
  const rows = uses.map(({ tokenId, nodeId, fingerprint }) => ({ token: tokenId, node: nodeId, fingerprint }));
  await sql`${PREPARED}
    insert into join_token_uses (token_id, node_id, fingerprint)
    select token, node, fingerprint
    from ${rowsFrom(rows, sql`token text, node text, fingerprint text`)} as new_use`.execute(tx);
}

/** The last machines that a token admitted, the newest first. */
export async function lastUsesOf(db: Db, tokenId: string, limit: number): Promise<readonly PastUse[]> {
  const rows = await db
    .selectFrom("join_token_uses")
    .select(["node_id", "fingerprint", "at"])
    .where("token_id", "=", tokenId)
    .orderBy("id", "desc")
    .limit(limit)
    .execute();
  return rows.map(({ node_id: nodeId, fingerprint, at }) => ({
    nodeId,
    fingerprint,
    atMs: at.getTime(),
  }));
}

/** Revoke a locked token. */
export async function saveRevocation(tx: Tx, id: string, by: Omit<JoinTokenRevocation, "atMs">): Promise<void> {
  await tx
    .updateTable("join_tokens")
    .set({ revoked_at: sql<Date>`now()`, revoked_by: by.actor, revoke_reason: by.reason })
    .where("id", "=", id)
    .execute();
}

/** Forget tokens that expired or were revoked longer ago than `olderThanMs`, with their uses; how many tokens went. */
export async function pruneJoinTokens(db: Db, olderThanMs: number): Promise<number> {
  const since = sql<Date>`now() - ${olderThanMs} * interval '1 millisecond'`;
  const { numDeletedRows } = await db
    .deleteFrom("join_tokens")
    .where((where) => where.or([where("expires_at", "<", since), where("revoked_at", "<", since)]))
    .executeTakeFirst();
  return Number(numDeletedRows);
}

/** Counting the uses of an unlimited token takes longer with each use, so registrations count limited tokens alone. */
function selectTokens(db: Db, counted: "all" | "limited" = "all") {
  const isCounted = sql<SqlBool>`(${counted === "all"} or t.max_uses is not null)`;
  return db.selectFrom("join_tokens as t").select([
    "t.id",
    "t.number",
    "t.description",
    "t.max_uses",
    "t.expires_at",
    sql<boolean>`coalesce(t.expires_at <= clock_timestamp(), false)`.as("is_expired"),
    "t.node_name_pattern",
    "t.labels",
    "t.preauthorized",
    "t.ephemeral",
    "t.created_at",
    "t.created_by",
    "t.revoked_at",
    "t.revoked_by",
    "t.revoke_reason",
    sql<bigint>`(
      select count(*) from join_token_uses as u where u.token_id = t.id and ${isCounted}
    )`.as("uses"),
    sql<Date | null>`(
      select u.at from join_token_uses as u where u.token_id = t.id order by u.id desc limit 1
    )`.as("last_used_at"),
  ]);
}

type TokenRow = Awaited<ReturnType<ReturnType<typeof selectTokens>["execute"]>>[number];

function toJoinToken(row: TokenRow): JoinToken {
  const { revoked_at, revoked_by, revoke_reason } = row;
  return {
    id: row.id,
    number: row.number,
    description: row.description,
    maxUses: row.max_uses,
    uses: Number(row.uses),
    lastUsedAtMs: row.last_used_at?.getTime() ?? null,
    expiresAtMs: row.expires_at?.getTime() ?? null,
    isExpired: row.is_expired,
    nodeNamePattern: row.node_name_pattern,
    labels: row.labels,
    preauthorized: row.preauthorized,
    ephemeral: row.ephemeral,
    createdAtMs: row.created_at.getTime(),
    createdBy: row.created_by,
    revocation:
      revoked_at === null ? null : { atMs: revoked_at.getTime(), actor: revoked_by ?? "", reason: revoke_reason ?? "" },
  };
}
