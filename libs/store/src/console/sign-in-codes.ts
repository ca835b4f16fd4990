import { sql } from "kysely";
import { ownerIn, type TokenOwner } from "../access/access-tokens.ts";
import type { Db, Tx } from "../database/store.ts";
import { ownerColumns } from "./sessions.ts";

/** A code by which a browser signs in once, without its text. */
export interface SignInCode {
  readonly owner: TokenOwner;
  /** What the session may do; of an owner with a token the token's own role counts. */
  readonly role: string;
  /** What the token is for, or the person's subject. */
  readonly name: string;
  /** When a session that it makes ends at the latest; null where the owner's own token decides, or nothing does. */
  readonly endsAtMs: number | null;
  readonly expiresAtMs: number;
  /** By the database's clock, so that every process judges alike. */
  readonly isExpired: boolean;
  readonly isUsed: boolean;
}

/** A code to keep. */
export interface NewSignInCode {
  /** SHA-256 of its text, 32 bytes. */
  readonly hash: Uint8Array;
  readonly owner: TokenOwner;
  readonly role: string;
  readonly name: string;
  /** See SignInCode. */
  readonly endsAtMs: number | null;
  readonly ttlMs: number;
}

/** How long codes are kept that have expired, so that their holders learn why they are refused. */
const KEPT_MS = 600_000;

/** Keep a new code, and forget those that expired long ago. When it expires, in milliseconds since 1970. */
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

/** How many codes of an owner can still be used. The owner's sign-ins are locked. */
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

/** The code with this hash, used or expired or neither; else null. */
export async function findSignInCode(db: Db, hash: Uint8Array): Promise<SignInCode | null> {
  const row = await select(db, hash).executeTakeFirst();
  return row === undefined ? null : toSignInCode(row);
}

/** The same, locked until the transaction ends. */
export async function lockSignInCode(tx: Tx, hash: Uint8Array): Promise<SignInCode | null> {
  const row = await select(tx, hash).forUpdate().executeTakeFirst();
  return row === undefined ? null : toSignInCode(row);
}

/** Use a code up. Its row is locked. */
export async function useUpSignInCode(tx: Tx, hash: Uint8Array): Promise<void> {
  await tx
    .updateTable("sign_in_codes")
    .set({ used_at: sql<Date>`now()` })
    .where("hash", "=", Buffer.from(hash))
    .execute();
}

/**
 * End the codes of an owner that can still be used, as if they had expired. The owner's sign-ins are not locked yet:
 * who uses a code locks its row first, and them then.
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
      ...(["role", "name", "owner_token", "owner_issuer", "owner_subject"] as const),
      ...(["session_ends_at", "expires_at", "used_at"] as const),
      // Not now(): a lock may have been waited for.
      sql<boolean>`expires_at <= clock_timestamp()`.as("is_expired"),
    ])
    .where("hash", "=", Buffer.from(hash));
}

type Row = NonNullable<Awaited<ReturnType<ReturnType<typeof select>["executeTakeFirst"]>>>;

function toSignInCode(row: Row): SignInCode {
  const owner = ownerIn(row);
  if (owner === null) throw new Error("a code to sign in with has no owner");
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
