import { sql } from "kysely";
import { ownerIn, type TokenOwner } from "../access/access-tokens.ts";
import type { Db, Tx } from "../database/store.ts";
import { ownerColumns } from "./sessions.ts";

/** A one-time sign-in code for a browser, without its text. */
export interface SignInCode {
  readonly owner: TokenOwner;
  /** The session's role. If the owner is a token, that token's role applies instead. */
  readonly role: string;
  /** The token's name, or the person's subject. */
  readonly name: string;
  /**
   * The latest end of a session that this code starts; null if only the owner's token limits the session, or nothing
   * does.
   */
  readonly endsAtMs: number | null;
  readonly expiresAtMs: number;
  /** Whether the code has expired by the database's clock, so that all processes agree. */
  readonly isExpired: boolean;
  readonly isUsed: boolean;
}

/** A code to store. */
export interface NewSignInCode {
  /** SHA-256 of the code's text, 32 bytes. */
  readonly hash: Uint8Array;
  readonly owner: TokenOwner;
  readonly role: string;
  readonly name: string;
  /** See SignInCode. */
  readonly endsAtMs: number | null;
  readonly ttlMs: number;
}

/** How long expired codes are kept, so that the error can say why a code is refused. */
const KEPT_MS = 600_000;

/**
 * Store a new code, and delete codes that expired long ago. Returns when the new code expires, in milliseconds since
 * 1970.
 */
export async function insertSignInCode(tx: Tx, code: NewSignInCode): Promise<number> {
  const { hash, owner, role, name, endsAtMs, ttlMs } = code;
  await sql`delete from sign_in_codes where expires_at < now() - ${KEPT_MS} * interval '1 millisecond'`.execute(tx);
  const { expires_at } = await tx
    .insertInto("sign_in_codes")
    .values({
      hash: Buffer.from(hash),
      role,
      name,
      ...ownerColumns(owner),
      session_ends_at: endsAtMs === null ? null : new Date(endsAtMs),
      expires_at: sql<Date>`now() + ${ttlMs} * interval '1 millisecond'`,
    })
    .returning("expires_at")
    .executeTakeFirstOrThrow();
  return expires_at.getTime();
}

/** Count an owner's codes that can still be used. The caller has locked the owner's sign-ins. */
export async function countSignInCodes(tx: Tx, owner: TokenOwner): Promise<number> {
  const columns = ownerColumns(owner);
  const { rows } = await sql<{ count: bigint }>`
    select count(*) as count from sign_in_codes
    where
      used_at is null and expires_at > now()
      and owner_token is not distinct from ${columns.owner_token}::text
      and owner_issuer is not distinct from ${columns.owner_issuer}::text
      and owner_subject is not distinct from ${columns.owner_subject}::text
  `.execute(tx);
  return Number(rows[0]?.count ?? 0);
}

/** Find the code with this hash, even a used or expired one; null if there is none. */
export async function findSignInCode(db: Db, hash: Uint8Array): Promise<SignInCode | null> {
  const row = await select(db, hash).executeTakeFirst();
  return row === undefined ? null : toSignInCode(row);
}

/** Like findSignInCode, and lock the code's row until the transaction ends. */
export async function lockSignInCode(tx: Tx, hash: Uint8Array): Promise<SignInCode | null> {
  const row = await select(tx, hash).forUpdate().executeTakeFirst();
  return row === undefined ? null : toSignInCode(row);
}

/** Mark a code as used. The caller has locked its row. */
export async function useUpSignInCode(tx: Tx, hash: Uint8Array): Promise<void> {
  await tx
    .updateTable("sign_in_codes")
    .set({ used_at: sql<Date>`now()` })
    .where("hash", "=", Buffer.from(hash))
    .execute();
}

/**
 * Expire an owner's usable codes. Do not lock the owner's sign-ins before this call: a call that uses a code locks
 * the code's row first, then the sign-ins.
 */
export async function endSignInCodes(tx: Tx, owner: TokenOwner): Promise<void> {
  const columns = ownerColumns(owner);
  await sql`
    with locked as (
      select hash from sign_in_codes
      where
        used_at is null and expires_at > now()
        and owner_token is not distinct from ${columns.owner_token}::text
        and owner_issuer is not distinct from ${columns.owner_issuer}::text
        and owner_subject is not distinct from ${columns.owner_subject}::text
      order by hash
      for update
    )
    update sign_in_codes set expires_at = now() where hash in (select hash from locked)
  `.execute(tx);
}

function select(db: Db, hash: Uint8Array) {
  return db
    .selectFrom("sign_in_codes")
    .select([
      ...(["role", "name", "owner_token", "owner_issuer", "owner_subject", "groups_left_out"] as const),
      ...(["session_ends_at", "expires_at", "used_at"] as const),
      // Use clock_timestamp(), because now() is the start of the transaction, and the statement may have waited for
      // a lock since then.
      sql<boolean>`expires_at <= clock_timestamp()`.as("is_expired"),
    ])
    .where("hash", "=", Buffer.from(hash));
}

type Row = NonNullable<Awaited<ReturnType<ReturnType<typeof select>["executeTakeFirst"]>>>;

function toSignInCode(row: Row): SignInCode {
  const owner = ownerIn(row);
  if (owner === null) throw new Error("a sign-in code has no owner");
  const { role, name, session_ends_at, expires_at, is_expired, used_at } = row;
  return {
    owner,
    role,
    name,
    endsAtMs: session_ends_at?.getTime() ?? null,
    expiresAtMs: expires_at.getTime(),
    isExpired: is_expired,
    isUsed: used_at !== null,
  };
}
