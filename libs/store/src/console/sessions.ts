import { sql } from "kysely";
import { type AccessToken, getAccessToken, lockAccessToken, type TokenOwner } from "../access/access-tokens.ts";
import type { Tx } from "../database/store.ts";

/** A session of the console to keep. */
export interface NewConsoleSession {
  readonly id: string;
  readonly name: string;
  readonly role: string;
  /** SHA-256 of the whole secret, 32 bytes. */
  readonly hash: Uint8Array;
  readonly owner: TokenOwner;
  /** The owner as an actor. */
  readonly actor: string;
  /** How long it lives without a use, in milliseconds. */
  readonly idleMs: number;
  /** How long it lives however it is used, in milliseconds. */
  readonly longestMs: number;
  /** When it ends at the latest, in milliseconds since 1970: with the credential that makes it; null for none. */
  readonly endsAtMs: number | null;
}

/**
 * Wait for other transactions in which this actor signs in or makes a code, so that what there may be of each can be
 * counted.
 */
export async function lockSignIns(tx: Tx, actor: string): Promise<void> {
  await sql`select pg_advisory_xact_lock(hashtextextended(${`rollcall sign-in ${actor}`}, 0))`.execute(tx);
}

/** Keep a new session. It ends with the token that it acts for, if that has an end. */
export async function insertConsoleSession(tx: Tx, session: NewConsoleSession): Promise<AccessToken> {
  const { id, name, role, hash, owner, actor, idleMs, longestMs, endsAtMs } = session;
  const latest = endsAtMs === null ? null : new Date(endsAtMs);
  const { owner_token, owner_issuer, owner_subject } = ownerColumns(owner);
  await sql`
    insert into access_tokens (
      id, name, role, hash, created_by, kind, owner_token, owner_issuer, owner_subject, idle_ms, ends_at, expires_at
    )
    select
      ${id}, ${name}, ${role}, ${Buffer.from(hash)}, ${actor}, 'CONSOLE_SESSION',
      ${owner_token}::text, ${owner_issuer}::text, ${owner_subject}::text, ${idleMs}::integer,
      life.ends_at, least(life.ends_at, now() + ${idleMs} * interval '1 millisecond')
    from (
      select least(
        now() + ${longestMs} * interval '1 millisecond',
        (select token.expires_at from access_tokens as token where token.id = ${owner_token}::text),
        ${latest}::timestamptz
      ) as ends_at
    ) as life
  `.execute(tx);
  const kept = await getAccessToken(tx, id);
  if (kept === null) throw new Error(`session ${id} is gone while it is kept`);
  return kept;
}

/** Sessions of an owner that are read at a time; there are fewer, as long as sign-in limits them. */
const MOST_SESSIONS = 1_000;

/**
 * The sessions of an owner that have not ended, those that were used last first, locked until the transaction ends;
 * with the session `besides`, of any owner, unless it was revoked. The owner's sign-ins are locked, and so is its token
 * where the transaction locks that as well.
 */
export async function lockSessions(
  tx: Tx,
  owner: TokenOwner,
  besides: string | null = null,
): Promise<readonly AccessToken[]> {
  const columns = ownerColumns(owner);
  // By id, as noteAccessTokenUses() locks them, and all in one order: of two browsers that change places neither waits
  // for the other.
  const { rows } = await sql<{ readonly id: string }>`
    select id from access_tokens
    where
      kind = 'CONSOLE_SESSION' and revoked_at is null
      and (
        id = ${besides}::text
        or (
          expires_at > now()
          and owner_token is not distinct from ${columns.owner_token}::text
          and owner_issuer is not distinct from ${columns.owner_issuer}::text
          and owner_subject is not distinct from ${columns.owner_subject}::text
        )
      )
    order by id
    limit ${MOST_SESSIONS}
  `.execute(tx);
  const locked: AccessToken[] = [];
  for (const { id } of rows) {
    const session = await lockAccessToken(tx, id);
    if (session !== null && session.revocation === null) locked.push(session);
  }
  const usedAtMs = ({ lastUsedAtMs, createdAtMs }: AccessToken) => lastUsedAtMs ?? createdAtMs;
  return locked.sort((a, b) => usedAtMs(b) - usedAtMs(a) || Number(b.number - a.number));
}

/** The columns that name an owner. */
export function ownerColumns(owner: TokenOwner) {
  return owner.kind === "token"
    ? { owner_token: owner.id, owner_issuer: null, owner_subject: null }
    : { owner_token: null, owner_issuer: owner.issuer, owner_subject: owner.subject };
}
