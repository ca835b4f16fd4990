import { createHash } from "node:crypto";
import { refuse, StoreUnavailableError } from "@rollcall/errors";
import { type Authenticator, type Caller, type IdentifiedCaller, isRole } from "@rollcall/identity";
import { Batcher, type Clock } from "@rollcall/process";
import type { LaneStore } from "../database/store.ts";
import { type AccessToken, findAccessTokens } from "./access-tokens.ts";

export interface AuthenticatorOptions {
  readonly store: Pick<LaneStore, "db">;
  readonly clock: Pick<Clock, "nowMs" | "sleep">;
  /** How long to cache a response of the store. A revoked token can still be accepted for this long. Default 1 s. */
  readonly cacheMs?: number;
  /** Maximum number of cached tokens; a new token evicts the oldest. Default 1,000. */
  readonly cacheLimit?: number;
  /** How long to wait for a store response, in milliseconds. Default 5000. */
  readonly waitMs?: number;
  /** Called for each use of a valid token. Must not block. */
  onUse?(id: string): void;
}

/** What the store says about a token. */
type Finding =
  | { readonly kind: "good"; readonly caller: IdentifiedCaller }
  | { readonly kind: "expired" | "revoked"; readonly id: string; readonly atMs: number; readonly isSession: boolean }
  | { readonly kind: "unknown" };

interface Answer {
  readonly finding: Promise<Finding>;
  readonly untilMs: number;
}

/** Maximum number of tokens in one query. */
const MOST_AT_ONCE = 500;
/** Maximum number of tokens that wait for the store. They normally wait a few milliseconds. */
const MOST_WAITING = 10_000;
/**
 * Default of `waitMs`: half of the shortest deadline of all methods that require a role. So a call that waits this
 * long still gets a clear error.
 */
const WAIT_MS = 5_000;

/**
 * The hash under which a bearer token is stored: SHA-256 of its whole text, 32 bytes. Tokens are random and long, so a
 * slow hash would not make them safer.
 */
export function accessTokenHash(token: string): Buffer {
  return createHash("sha256").update(token, "utf8").digest();
}

/**
 * Find callers by their access tokens. A token is looked up by its hash, so the time of a comparison reveals nothing
 * about a secret.
 *
 * The authenticator rejects with TOKEN_EXPIRED or TOKEN_REVOKED, which only a client with the token's whole text can
 * see. It also rejects while the store is unavailable; this is never cached.
 *
 * Tokens that are not cached are looked up together, one query at a time. So attempts by anonymous clients use only
 * one connection, however many there are. When too many tokens wait, the authenticator rejects with OVERLOADED. A
 * token that waits longer than `waitMs` is rejected as if the store were unavailable.
 */
export function createAuthenticator(options: AuthenticatorOptions): Authenticator {
  const { store, clock, cacheMs = 1_000, cacheLimit = 1_000, waitMs = WAIT_MS, onUse } = options;
  const answers = new Map<string, Answer>();
  const lookups = new Batcher<Buffer, AccessToken | null>({
    run: (hashes) => findAccessTokens(store.db, hashes),
    maxItems: MOST_AT_ONCE,
    maxWaitMs: 0,
    maxQueued: MOST_WAITING,
  });

  const ask = (key: string, hash: Buffer): Promise<Finding> => {
    const finding = inTime(lookups.submit(hash).then(findingOf), waitMs, clock);
    // The cached finding expires `cacheMs` after the start of its query, so a finding is never older than `cacheMs`.
    const answer = { finding, untilMs: clock.nowMs() + cacheMs };
    answers.delete(key);
    makeRoom(answers, cacheLimit);
    answers.set(key, answer);
    finding.catch(() => {
      if (answers.get(key) === answer) answers.delete(key);
    });
    return finding;
  };

  return async (bearer) => {
    const hash = accessTokenHash(bearer);
    const key = hash.toString("base64");
    const known = answers.get(key);
    const isFresh = known !== undefined && clock.nowMs() < known.untilMs;
    const finding = await (isFresh ? known.finding : ask(key, hash));
    if (finding.kind === "good") for (const id of tokensOf(finding.caller)) onUse?.(id);
    return callerOf(finding);
  };
}

async function inTime<T>(work: Promise<T>, waitMs: number, clock: Pick<Clock, "sleep">): Promise<T> {
  const answered = new AbortController();
  const late = clock.sleep(waitMs, answered.signal).then(() => {
    throw new StoreUnavailableError(`the database did not return the token's owner within ${waitMs} ms`);
  });
  // Ignore the rejection of the sleep, which is aborted once `work` settles.
  late.catch(() => {});
  return await Promise.race([work, late]).finally(() => answered.abort());
}

function findingOf(token: AccessToken | null): Finding {
  // Refuse a token whose role only a newer version knows: it would be unsafe to guess the role.
  if (token === null || !isRole(token.role)) return { kind: "unknown" };
  const { id, role, expiresAtMs, revocation, session } = token;
  const isSession = session !== null;
  if (revocation !== null) return { kind: "revoked", id, atMs: revocation.atMs, isSession };
  if (expiresAtMs === null) return { kind: "good", caller: { kind: "token", id, role } };
  if (token.isExpired) return { kind: "expired", id, atMs: expiresAtMs, isSession };
  const caller = session === null ? { kind: "token" as const, id } : { ...session, session: id };
  return { kind: "good", caller: { ...caller, role, expiresAtMs } };
}

/** The tokens that a call uses: an access token, a console session, or both. */
function tokensOf(caller: IdentifiedCaller): readonly string[] {
  const tokens = caller.kind === "token" ? [caller.id] : [];
  return caller.session === undefined ? tokens : [caller.session, ...tokens];
}

function callerOf(finding: Finding): Caller | null {
  switch (finding.kind) {
    case "good":
      return finding.caller;
    case "unknown":
      return null;
    case "expired":
    case "revoked": {
      const { kind, id } = finding;
      const at = new Date(finding.atMs).toISOString();
      const verb = kind === "expired" ? "expired" : "was revoked";
      throw refuse(
        kind === "expired" ? "TOKEN_EXPIRED" : "TOKEN_REVOKED",
        finding.isSession
          ? `session ${id} ${verb} at ${at}: sign in again`
          : `access token ${id} ${verb} at ${at}: ask an admin for a new one`,
        { metadata: { token: id, at } },
      );
    }
  }
}

/** Evict the oldest responses. A Map iterates in insertion order. */
function makeRoom(answers: Map<string, Answer>, limit: number): void {
  for (const key of answers.keys()) {
    if (answers.size < limit) return;
    answers.delete(key);
  }
}
