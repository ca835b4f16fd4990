import type { Db } from "./store.ts";

/** A bearer token, without its secret. */
export interface AccessToken {
  readonly id: string;
  readonly name: string;
  /** One of the roles that the callers of this module know. */
  readonly role: string;
  readonly createdAtMs: number;
}

/** A token to keep. */
export interface NewAccessToken {
  readonly id: string;
  readonly name: string;
  readonly role: string;
  /** SHA-256 of the secret, 32 bytes. */
  readonly hash: Uint8Array;
}

/**
 * Keep a token unless one with its hash is kept already; the one that is kept. Any number of processes may do so at once.
 *
 * @throws when that one was revoked, or the id belongs to another token.
 */
export async function ensureAccessToken(db: Db, token: NewAccessToken): Promise<AccessToken> {
  await db
    .insertInto("access_tokens")
    .values({ ...token, hash: Buffer.from(token.hash) })
    .onConflict((conflict) => conflict.column("hash").doNothing())
    .execute();
  const kept = await findAccessToken(db, token.hash);
  if (kept === null) throw new Error(`access token ${token.name} was revoked: use another one`);
  return kept;
}

/** The token with this hash, unless revoked; else null. */
export async function findAccessToken(db: Db, hash: Uint8Array): Promise<AccessToken | null> {
  const row = await db
    .selectFrom("access_tokens")
    .select(["id", "name", "role", "created_at"])
    .where("hash", "=", Buffer.from(hash))
    .where("revoked_at", "is", null)
    .executeTakeFirst();
  if (row === undefined) return null;
  return { id: row.id, name: row.name, role: row.role, createdAtMs: row.created_at.getTime() };
}

/** Whether any token of this role is kept and not revoked. */
export async function hasAccessToken(db: Db, role: string): Promise<boolean> {
  const row = await db
    .selectFrom("access_tokens")
    .select("id")
    .where("role", "=", role)
    .where("revoked_at", "is", null)
    .limit(1)
    .executeTakeFirst();
  return row !== undefined;
}
