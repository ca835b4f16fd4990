import { createHash, timingSafeEqual } from "node:crypto";
import { type SqlBool, sql } from "kysely";
import { rowsFrom } from "../database/batches.ts";
import { together } from "../database/one-connection.ts";
import { PREPARED } from "../database/pool.ts";
import type { Db, Tx } from "../database/store.ts";

/** A token that machines join with, without its secret. */
export interface JoinToken {
  readonly id: string;
  /** A sequence number, which increases with each token. */
  readonly number: bigint;
  readonly description: string;
  /** How many machines the token can admit; null for no limit. */
  readonly maxUses: number | null;
  /** How many machines the token has admitted. */
  readonly uses: number;
  /** When the token was last used; null before the first use. */
  readonly lastUsedAtMs: number | null;
  /** When the token expires; null for never. */
  readonly expiresAtMs: number | null;
  /** Whether the token has expired by the database's clock, so that all replicas agree. */
  readonly isExpired: boolean;
  /** A pattern for the names of the nodes that the token admits; empty for any name. */
  readonly nodeNamePattern: string;
  /** Labels for each node that joins with this token. */
  readonly labels: Readonly<Record<string, string>>;
  readonly preauthorized: boolean;
  readonly ephemeral: boolean;
  readonly createdAtMs: number;
  readonly createdBy: string;
  /** Who revoked the token, why and when; null if it is not revoked. */
  readonly revocation: JoinTokenRevocation | null;
}

/** Who revoked a token, why and when. */
export interface JoinTokenRevocation {
  readonly atMs: number;
  readonly actor: string;
  /** The operator's reason; may be empty. */
  readonly reason: string;
}

/** A token to store. */
export interface NewJoinToken
  extends Pick<
    JoinToken,
    "id" | "description" | "maxUses" | "nodeNamePattern" | "labels" | "preauthorized" | "ephemeral" | "createdBy"
  > {
  /** SHA-256 of the whole text, 32 bytes. */
  readonly hash: Uint8Array;
  /** The token's lifetime in milliseconds; null for a token that never expires. */
  readonly ttlMs: number | null;
}

/**
 * A token whose row is locked, with the hash that proves that a machine has its text. `uses` is 0 if the token has no
 * limit, because its uses are not counted.
 */
export interface LockedJoinToken extends JoinToken {
  readonly hash: Uint8Array;
}

/** The use of a token by one machine that it admitted. */
export interface JoinTokenUse {
  readonly tokenId: string;
  readonly nodeId: string;
  readonly fingerprint: string;
}

/** A use of a token, with its time. */
export interface PastUse extends Omit<JoinTokenUse, "tokenId"> {
  readonly atMs: number;
}

/**
 * The hash under which a join token is stored: SHA-256 of its whole text, 32 bytes. A slow hash is not needed, because
 * the secret is random and long.
 */
export function joinTokenHash(text: string): Buffer {
  return createHash("sha256").update(text, "utf8").digest();
}

/** Store a token. The database's clock sets its creation time and its expiry. */
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
  if (kept === null) throw new Error(`join token ${id} disappeared while it was created`);
  return kept;
}

/** Get one token; null when it does not exist. */
export async function getJoinToken(db: Db, id: string): Promise<JoinToken | null> {
  const row = await selectTokens(db).where("t.id", "=", id).executeTakeFirst();
  return row === undefined ? null : toJoinToken(row);
}

/**
 * Get the token with this id, if the hash is that of its whole text; otherwise null. The token is not locked, so
 * another machine can use it up at any time.
 */
export async function provenJoinToken(db: Db, id: string, hash: Uint8Array): Promise<JoinToken | null> {
  const row = await selectTokens(db, "limited").select("t.hash").where("t.id", "=", id).executeTakeFirst();
  return row !== undefined && timingSafeEqual(row.hash, hash) ? toJoinToken(row) : null;
}

/** Which tokens to list. */
export interface JoinTokenPage {
  readonly limit: number;
  /** Only tokens with a lower number; null starts with the newest. */
  readonly before: bigint | null;
}

/** List tokens, newest first. */
export async function listJoinTokens(db: Db, { limit, before }: JoinTokenPage): Promise<readonly JoinToken[]> {
  let query = selectTokens(db).orderBy("t.number", "desc").limit(limit);
  if (before !== null) query = query.where("t.number", "<", before);
  return (await query.execute()).map(toJoinToken);
}

/** Get one token and lock its row until the transaction ends; null when it does not exist. */
export async function lockJoinToken(tx: Tx, id: string): Promise<JoinToken | null> {
  const locked = await tx
    .selectFrom("join_tokens")
    .select("id")
    .where("id", "=", id)
    .forNoKeyUpdate()
    .executeTakeFirst();
  // Read the token in a second statement: if the first statement waited for the lock, its snapshot may be older than
  // the last change to the row.
  return locked === undefined ? null : getJoinToken(tx, id);
}

/**
 * Lock the rows of these tokens. A token with limited uses is locked exclusively, so that no other transaction counts
 * its uses at the same time. A token without a limit is locked only against revocation, so that any number of
 * registries can admit machines with it concurrently. Must be called before the transaction locks nodes. To avoid
 * deadlocks, limited tokens are locked first, and each kind in order of id.
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
  const { locked, rows } = await together({ locked: locking, rows: reading });
  // Leave out a token that was created between the two statements: it is not locked.
  const lockedIds = new Set(locked.rows.map(({ id }) => id));
  const kept = rows.filter(({ id }) => lockedIds.has(id));
  return new Map(kept.map((row) => [row.id, { ...toJoinToken(row), hash: row.hash }]));
}

/** Record the uses of locked tokens, one for each machine that they admitted. */
export async function saveJoinTokenUses(tx: Tx, uses: readonly JoinTokenUse[]): Promise<void> {
  if (uses.length === 0) return;
  const rows = uses.map(({ tokenId, nodeId, fingerprint }) => ({ token: tokenId, node: nodeId, fingerprint }));
  await sql`${PREPARED}
    insert into join_token_uses (token_id, node_id, fingerprint)
    select token, node, fingerprint
    from ${rowsFrom(rows, sql`token text, node text, fingerprint text`)} as new_use`.execute(tx);
}

/** List the machines that a token admitted last, newest first. */
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

/** Revoke a token. The caller has locked its row. */
export async function saveRevocation(tx: Tx, id: string, by: Omit<JoinTokenRevocation, "atMs">): Promise<void> {
  await tx
    .updateTable("join_tokens")
    .set({ revoked_at: sql<Date>`now()`, revoked_by: by.actor, revoke_reason: by.reason })
    .where("id", "=", id)
    .execute();
}

/**
 * Delete tokens that expired or were revoked longer ago than `olderThanMs`, together with their uses. Returns how many
 * tokens it deleted.
 */
export async function pruneJoinTokens(db: Db, olderThanMs: number): Promise<number> {
  const since = sql<Date>`now() - ${olderThanMs} * interval '1 millisecond'`;
  const { numDeletedRows } = await db
    .deleteFrom("join_tokens")
    .where((where) => where.or([where("expires_at", "<", since), where("revoked_at", "<", since)]))
    .executeTakeFirst();
  return Number(numDeletedRows);
}

/**
 * Registrations count the uses of limited tokens only, because counting the uses of an unlimited token takes longer
 * with each use.
 */
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
