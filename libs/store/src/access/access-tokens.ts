import { timingSafeEqual } from "node:crypto";
import { type Selectable, type SqlBool, sql } from "kysely";
import type { AccessTokensTable } from "../database/schema.ts";
import type { Db, Tx } from "../database/store.ts";

/** A bearer token, without its secret. */
export interface AccessToken {
  readonly id: string;
  /** A sequence number, which increases with each token. */
  readonly number: bigint;
  readonly name: string;
  /** A role that the callers of this module define. */
  readonly role: string;
  readonly createdAtMs: number;
  /** The actor that created the token; "system" for a token from the configuration or the first start. */
  readonly createdBy: string;
  /** When the token expires; null for never. */
  readonly expiresAtMs: number | null;
  /** Whether the token has expired by the database's clock, so that all processes agree. */
  readonly isExpired: boolean;
  /** When the token was last used, accurate to about a minute; null before the first use. */
  readonly lastUsedAtMs: number | null;
  /** Who revoked the token, and when; null if it is not revoked. */
  readonly revocation: AccessTokenRevocation | null;
  /** The owner of a console session; null for other tokens. */
  readonly session: TokenOwner | null;
}

/** The owner of a console session or of a sign-in code: an access token, or a person. */
export type TokenOwner =
  | { readonly kind: "token"; readonly id: string }
  | {
      readonly kind: "person";
      readonly issuer: string;
      readonly subject: string;
      /**
       * The claim with which the issuer reported, at sign-in, that it had left out the groups; absent if the issuer
       * listed the groups.
       */
      readonly groupsLeftOut?: string;
    };

/** Who revoked a token, and when. */
export interface AccessTokenRevocation {
  readonly atMs: number;
  readonly actor: string;
}

/** A token to store. */
export interface NewAccessToken {
  readonly id: string;
  readonly name: string;
  readonly role: string;
  /** SHA-256 of the secret, 32 bytes. */
  readonly hash: Uint8Array;
  /** The actor that creates the token; "system" when absent. */
  readonly createdBy?: string;
  /** The token's lifetime in milliseconds; null or absent for a token that never expires. */
  readonly ttlMs?: number | null;
}

/** Which tokens to list. */
export interface ListAccessTokensOptions {
  /** Only tokens with a higher number. */
  readonly after: bigint;
  readonly limit: number;
  /** Whether to list expired and revoked tokens too. */
  readonly showEnded: boolean;
}

/**
 * Store a token unless one with its hash exists. Returns the stored token, even an expired or revoked one. Several
 * processes can call this concurrently.
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
  if (kept === null) throw new Error(`access token ${token.name} disappeared while it was stored`);
  return kept;
}

/** Store a new token. The database's clock sets its creation time and its expiry. */
export async function insertAccessToken(tx: Tx, token: NewAccessToken): Promise<AccessToken> {
  await tx.insertInto("access_tokens").values(columnsOf(token)).execute();
  const kept = await getAccessToken(tx, token.id);
  if (kept === null) throw new Error(`access token ${token.id} disappeared while it was stored`);
  return kept;
}

/** Find the token with this hash, even an expired or revoked one; null when there is none. */
export async function findAccessToken(db: Db, hash: Uint8Array): Promise<AccessToken | null> {
  const [token = null] = await findAccessTokens(db, [hash]);
  return token;
}

/** Like findAccessToken, for several hashes. Results are in the order of the hashes. */
export async function findAccessTokens(
  db: Db,
  hashes: readonly Uint8Array[],
): Promise<readonly (AccessToken | null)[]> {
  const wanted = hashes.map((hash) => Buffer.from(hash));
  const rows = await selectTokens(db).where("hash", "in", wanted).execute();
  const byHash = new Map(rows.map((row) => [row.hash.toString("base64"), row]));
  return wanted.map((hash) => {
    const row = byHash.get(hash.toString("base64"));
    // Compare the hashes in constant time. The duration of the index lookup depends on how long a prefix the hashes
    // share, but that reveals nothing about the secret behind a 32-byte hash.
    return row === undefined || !timingSafeEqual(row.hash, hash) ? null : toAccessToken(row);
  });
}

/** Get the token with this id; null when there is none. */
export async function getAccessToken(db: Db, id: string): Promise<AccessToken | null> {
  const row = await selectTokens(db).where("id", "=", id).executeTakeFirst();
  return row === undefined ? null : toAccessToken(row);
}

/** Get the token with this id and lock its row until the transaction ends; null when there is none. */
export async function lockAccessToken(tx: Tx, id: string): Promise<AccessToken | null> {
  const row = await selectTokens(tx).where("id", "=", id).forUpdate().executeTakeFirst();
  return row === undefined ? null : toAccessToken(row);
}

/** Read a page of tokens, oldest first. */
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

/** Whether a token with this role exists that is neither expired nor revoked. */
export async function hasAccessToken(db: Db, role: string): Promise<boolean> {
  return (await countAccessTokens(db, role)) > 0;
}

/** Count the tokens with this role that are neither expired nor revoked. */
export async function countAccessTokens(db: Db, role: string): Promise<number> {
  const { count } = await db
    .selectFrom("access_tokens")
    .select(({ fn }) => fn.countAll<bigint>().as("count"))
    .where("role", "=", role)
    // Leave out console sessions, because they end soon and cannot create tokens.
    .where("kind", "=", "TOKEN")
    .where(isValid())
    .executeTakeFirstOrThrow();
  return Number(count);
}

/**
 * Revoke a token permanently, together with the console sessions that act for it. The caller has locked the token's
 * row and checked that the token is not revoked yet.
 */
export async function revokeAccessToken(
  tx: Tx,
  id: string,
  by: { readonly actor: string; readonly reason: string },
): Promise<void> {
  // Lock the sessions in order of id. lockSessions() does the same for a sign-out, which locks no token.
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
 * Record when tokens were last used.
 *
 * Keeps a stored time that is later than the given one. Also extends the console sessions that were used, unless they
 * have already ended.
 *
 * @param uses how long ago each token was used, in milliseconds, keyed by token id.
 */
export async function noteAccessTokenUses(db: Db, uses: ReadonlyMap<string, number>): Promise<void> {
  if (uses.size === 0) return;
  // Lock a token before the sessions that act for it, in the same order as transactions that end both.
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
 * Delete tokens that expired or were revoked longer ago than `olderThanMs`. Returns how many. Tokens from the
 * configuration or the first start are kept: otherwise the next start with the same file would make them valid again.
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
      ...(["owner_token", "owner_issuer", "owner_subject", "groups_left_out"] as const),
      sql<boolean>`coalesce(expires_at <= now(), false)`.as("is_expired"),
    ]);
}

function isValid() {
  return sql<SqlBool>`revoked_at is null and (expires_at is null or expires_at > now())`;
}

type OwnerColumns = Pick<
  Selectable<AccessTokensTable>,
  "owner_token" | "owner_issuer" | "owner_subject" | "groups_left_out"
>;

type TokenRow = Omit<Selectable<AccessTokensTable>, "hash" | "kind" | "revoke_reason" | "ends_at" | "idle_ms"> & {
  readonly is_expired: boolean;
};

/** The owner in a row; null if the row has no owner. */
export function ownerIn(row: OwnerColumns): TokenOwner | null {
  const { owner_token: id, owner_issuer: issuer, owner_subject: subject } = row;
  if (id !== null) return { kind: "token", id };
  if (issuer === null || subject === null) return null;
  const { groups_left_out: groupsLeftOut } = row;
  return { kind: "person", issuer, subject, ...(groupsLeftOut === null ? {} : { groupsLeftOut }) };
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
