import { sql } from "kysely";
import { type AccessToken, getAccessToken, lockAccessToken, type TokenOwner } from "../access/access-tokens.ts";
import type { Tx } from "../database/store.ts";

/** A console session to store. */
export interface NewConsoleSession {
  readonly id: string;
  readonly name: string;
  readonly role: string;
  /** SHA-256 of the whole secret, 32 bytes. */
  readonly hash: Uint8Array;
  readonly owner: TokenOwner;
  /** The owner as an actor. */
  readonly actor: string;
  /** How long the session lasts without being used, in milliseconds. */
  readonly idleMs: number;
  /** Maximum lifetime of the session, even if it is used, in milliseconds. */
  readonly longestMs: number;
  /**
   * The latest end of the session, in milliseconds since 1970: the expiry of the credential that created the session;
   * null for no limit.
   */
  readonly endsAtMs: number | null;
}

/**
 * Wait until this actor's other sign-ins and requests for codes finish, so that the caller can check the limits of
 * sessions and codes.
 */
export async function lockSignIns(tx: Tx, actor: string): Promise<void> {
  await sql`select pg_advisory_xact_lock(hashtextextended(${`rollcall sign-in ${actor}`}, 0))`.execute(tx);
}

/** Store a new session. The session expires no later than the token that it acts for. */
export async function insertConsoleSession(tx: Tx, session: NewConsoleSession): Promise<AccessToken> {
  const { id, name, role, hash, owner, actor, idleMs, longestMs, endsAtMs } = session;
  const latest = endsAtMs === null ? null : new Date(endsAtMs);
  const { owner_token, owner_issuer, owner_subject, groups_left_out } = ownerColumns(owner);
  await sql`
    insert into access_tokens (
      id, name, role, hash, created_by, kind, owner_token, owner_issuer, owner_subject, groups_left_out, idle_ms,
      ends_at, expires_at
    )
    select
      ${id}, ${name}, ${role}, ${Buffer.from(hash)}, ${actor}, 'CONSOLE_SESSION',
      ${owner_token}::text, ${owner_issuer}::text, ${owner_subject}::text, ${groups_left_out}::text,
      ${idleMs}::integer,
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
  if (kept === null) throw new Error(`session ${id} disappeared while it was stored`);
  return kept;
}

/** Maximum number of an owner's sessions in one read. Sign-in keeps the number of sessions below this limit. */
const MOST_SESSIONS = 1_000;

/**
 * Lock an owner's sessions that have not ended, until the transaction ends. Returns them, most recently used first.
 * The session `withToken` is included even if it has another owner, unless it was revoked. The caller has locked the
 * owner's sign-ins. A caller that also locks the owner's token must do so before this call.
 */
export async function lockSessions(
  tx: Tx,
  owner: TokenOwner,
  withToken: string | null = null,
): Promise<readonly AccessToken[]> {
  const columns = ownerColumns(owner);
  // Lock the owner's sessions and `withToken` in one statement, in order of id like noteAccessTokenUses(). So two
  // browsers that swap their sessions cannot deadlock.
  const { rows } = await sql<{ readonly id: string }>`
    select id from access_tokens
    where
      kind = 'CONSOLE_SESSION' and revoked_at is null
      and (
        id = ${withToken}::text
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

/** The columns that identify an owner. */
export function ownerColumns(owner: TokenOwner) {
  return owner.kind === "token"
    ? { owner_token: owner.id, owner_issuer: null, owner_subject: null, groups_left_out: null }
    : {
        ...{ owner_token: null, owner_issuer: owner.issuer, owner_subject: owner.subject },
        groups_left_out: owner.groupsLeftOut ?? null,
      };
}
