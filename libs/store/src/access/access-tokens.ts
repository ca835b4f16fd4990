import { timingSafeEqual } from "node:crypto";
import { type Selectable, type SqlBool, sql } from "kysely";
import type { AccessTokensTable } from "../database/schema.ts";
import type { Db, Tx } from "../database/store.ts";

/** A bearer token, without its secret. */
export interface AccessToken {
  readonly id: string;
  /** Rises with each token. */
  readonly number: bigint;
  readonly name: string;
  /** One of the roles that the callers of this module know. */
  readonly role: string;
  readonly createdAtMs: number;
  /** Who created it, as an actor; "system" for one that the configuration or the first start brought. */
  readonly createdBy: string;
  /** Null for a token that never expires. */
  readonly expiresAtMs: number | null;
  /** By the database's clock, so that every process judges alike. */
  readonly isExpired: boolean;
  /** To about a minute; null before the first use. */
  readonly lastUsedAtMs: number | null;
  /** Null for a token that is not revoked. */
  readonly revocation: AccessTokenRevocation | null;
  /** For whom a session of the console acts; null for a token that is none. */
  readonly session: TokenOwner | null;
}

/** For whom a session of the console, or a code that begins one, acts. */
export type TokenOwner =
  | { readonly kind: "token"; readonly id: string }
  | { readonly kind: "person"; readonly issuer: string; readonly subject: string };

/** Who revoked a token, and when. */
export interface AccessTokenRevocation {
  readonly atMs: number;
  /** Empty when no reason was given. */
  readonly actor: string;
}

/** A token to keep. */
export interface NewAccessToken {
  readonly id: string;
  readonly name: string;
  readonly role: string;
  /** SHA-256 of the secret, 32 bytes. */
  readonly hash: Uint8Array;
  /** Who creates it; "system" when absent. */
  readonly createdBy?: string;
  /** Its life in milliseconds; null or absent for ever. */
  readonly ttlMs?: number | null;
}

/** Which tokens to list. */
export interface ListAccessTokensOptions {
  /** Only those with a higher number. */
  readonly after: bigint;
  readonly limit: number;
  /** Whether those that expired or were revoked are listed too. */
  readonly showEnded: boolean;
}

/**
 * Keep a token unless one with its hash is kept already; the one that is kept, whatever happened to it. Any number of
 * processes may do so at once.
 *
 * @throws when the id belongs to another token.
 */
export async function ensureAccessToken(db: Db, token: NewAccessToken): Promise<AccessToken> {
  await db
    .insertInto("access_tokens")
    .values(columnsOf(token))
    .onConflict((conflict) => conflict.column("hash").doNothing())
    .execute();
  const kept = await findAccessToken(db, token.hash);
  if (kept === null) throw new Error(`access token ${token.name} is gone while it is kept`);
  return kept;
}

/** Keep a new token. Since when it is kept, and until when, is the database's. */
export async function insertAccessToken(tx: Tx, token: NewAccessToken): Promise<AccessToken> {
  await tx.insertInto("access_tokens").values(columnsOf(token)).execute();
  const kept = await getAccessToken(tx, token.id);
  if (kept === null) throw new Error(`access token ${token.id} is gone while it is kept`);
  return kept;
}

/** The token with this hash, expired or revoked or neither; else null. */
export async function findAccessToken(db: Db, hash: Uint8Array): Promise<AccessToken | null> {
  const [token = null] = await findAccessTokens(db, [hash]);
  return token;
}

/** The same for several hashes, in their order. */
export async function findAccessTokens(
  db: Db,
  hashes: readonly Uint8Array[],
): Promise<readonly (AccessToken | null)[]> {
  const wanted = hashes.map((hash) => Buffer.from(hash));
  const rows = await selectTokens(db).where("hash", "in", wanted).execute();
  const byHash = new Map(rows.map((row) => [row.hash.toString("base64"), row]));
  return wanted.map((hash) => {
    const row = byHash.get(hash.toString("base64"));
    // The index has compared them already, in a time that depends on how much of the hash is alike; a hash of 32 bytes
    // says nothing about its secret by that, and what decides is compared here.
    return row === undefined || !timingSafeEqual(row.hash, hash) ? null : toAccessToken(row);
  });
}

/** The token with this id; null when there is none. */
export async function getAccessToken(db: Db, id: string): Promise<AccessToken | null> {
  const row = await selectTokens(db).where("id", "=", id).executeTakeFirst();
  return row === undefined ? null : toAccessToken(row);
}

/** The token with this id, locked until the transaction ends; null when there is none. */
export async function lockAccessToken(tx: Tx, id: string): Promise<AccessToken | null> {
  const row = await selectTokens(tx).where("id", "=", id).forUpdate().executeTakeFirst();
  return row === undefined ? null : toAccessToken(row);
}

/** A page of tokens, oldest first. */
export async function listAccessTokens(
  db: Db,
  { after, limit, showEnded }: ListAccessTokensOptions,
): Promise<readonly AccessToken[]> {
  const rows = await selectTokens(db)
    .where("number", ">", after)
    .$if(!showEnded, (query) => query.where(isValid()))
    .orderBy("number")
    .limit(limit)
    .execute();
  return rows.map(toAccessToken);
}

/** Whether any token of this role is kept, and is neither expired nor revoked. */
export async function hasAccessToken(db: Db, role: string): Promise<boolean> {
  return (await countAccessTokens(db, role)) > 0;
}

/** How many tokens of this role are kept that are neither expired nor revoked. */
export async function countAccessTokens(db: Db, role: string): Promise<number> {
  const { count } = await db
    .selectFrom("access_tokens")
    .select(({ fn }) => fn.countAll<bigint>().as("count"))
    .where("role", "=", role)
    // A session of the console ends soon, and creates no other.
    .where("kind", "=", "TOKEN")
    .where(isValid())
    .executeTakeFirstOrThrow();
  return Number(count);
}

/**
 * End a token for good, and with it the sessions of the console that act for it. Its row is locked, and it is not
 * revoked yet.
 */
export async function revokeAccessToken(
  tx: Tx,
  id: string,
  by: { readonly actor: string; readonly reason: string },
): Promise<void> {
  // By id, as lockSessions() locks them for a sign-out, which locks no token.
  await sql`
    select id from access_tokens where owner_token = ${id} and revoked_at is null order by id for update
  `.execute(tx);
  await tx
    .updateTable("access_tokens")
    .set({ revoked_at: sql<Date>`now()`, revoked_by: by.actor, revoke_reason: by.reason })
    .where((where) =>
      where.or([where("id", "=", id), where.and([where("owner_token", "=", id), where("revoked_at", "is", null)])]),
    )
    .execute();
}

/**
 * Note when tokens were last used, given by how long ago that was, in milliseconds. A later use that is known already
 * stays. A session of the console lives on by its use, unless it has ended already.
 */
export async function noteAccessTokenUses(db: Db, uses: ReadonlyMap<string, number>): Promise<void> {
  if (uses.size === 0) return;
  // A token before the sessions that act for it, as those lock them that end both.
  await sql`
    with locked as (
      select id from access_tokens where id = any(${[...uses.keys()]}::text[]) order by kind desc, id for update
    )
    update access_tokens as token
    set
      last_used_at = used.at,
      expires_at = case
        when token.kind = 'TOKEN' or token.expires_at <= now() then token.expires_at
        else greatest(token.expires_at, least(token.ends_at, used.at + token.idle_ms * interval '1 millisecond'))
      end
    from (
      select id, now() - age_ms * interval '1 millisecond' as at
      from unnest(${[...uses.keys()]}::text[], ${[...uses.values()]}::float8[]) as given (id, age_ms)
    ) as used
    where
      token.id = used.id and token.id in (select id from locked)
      and (token.last_used_at is null or token.last_used_at < used.at)
  `.execute(db);
}

/**
 * Forget tokens that expired or were revoked longer ago than `olderThanMs`; how many went. Those that the configuration
 * or the first start brought stay: a start with the same file would bring them back to life.
 */
export async function pruneAccessTokens(db: Db, olderThanMs: number): Promise<number> {
  const since = sql<Date>`now() - ${olderThanMs} * interval '1 millisecond'`;
  const { numDeletedRows } = await db
    .deleteFrom("access_tokens")
    .where("created_by", "<>", "system")
    .where((where) => where.or([where("expires_at", "<", since), where("revoked_at", "<", since)]))
    .executeTakeFirst();
  return Number(numDeletedRows);
}

function columnsOf({ id, name, role, hash, createdBy = "system", ttlMs = null }: NewAccessToken) {
  return {
    id,
    name,
    role,
    hash: Buffer.from(hash),
    created_by: createdBy,
    expires_at: ttlMs === null ? null : sql<Date>`now() + ${ttlMs} * interval '1 millisecond'`,
  };
}

function selectTokens(db: Db) {
  return db
    .selectFrom("access_tokens")
    .select([
      ...(["id", "number", "name", "role", "hash", "created_at", "created_by"] as const),
      ...(["expires_at", "last_used_at", "revoked_at", "revoked_by"] as const),
      ...(["owner_token", "owner_issuer", "owner_subject"] as const),
      sql<boolean>`coalesce(expires_at <= now(), false)`.as("is_expired"),
    ]);
}

function isValid() {
  return sql<SqlBool>`revoked_at is null and (expires_at is null or expires_at > now())`;
}

type OwnerColumns = Pick<Selectable<AccessTokensTable>, "owner_token" | "owner_issuer" | "owner_subject">;

type TokenRow = Omit<Selectable<AccessTokensTable>, "hash" | "kind" | "revoke_reason" | "ends_at" | "idle_ms"> & {
  readonly is_expired: boolean;
};

/** The owner that a row names; null where it names none. */
export function ownerIn(row: OwnerColumns): TokenOwner | null {
  const { owner_token: id, owner_issuer: issuer, owner_subject: subject } = row;
  if (id !== null) return { kind: "token", id };
  return issuer === null || subject === null ? null : { kind: "person", issuer, subject };
}

function toAccessToken(row: TokenRow): AccessToken {
  return {
    id: row.id,
    number: row.number,
    name: row.name,
    role: row.role,
    createdAtMs: row.created_at.getTime(),
    createdBy: row.created_by,
    expiresAtMs: row.expires_at?.getTime() ?? null,
    isExpired: row.is_expired,
    lastUsedAtMs: row.last_used_at?.getTime() ?? null,
    revocation: row.revoked_at === null ? null : { atMs: row.revoked_at.getTime(), actor: row.revoked_by ?? "" },
    session: ownerIn(row),
  };
}
