import { createHash } from "node:crypto";
import { refuse } from "@rollcall/errors";
import { type Authenticator, type Caller, isRole, type KnownCaller } from "@rollcall/identity";
import { Batcher, type Clock } from "@rollcall/process";
import type { CallStore } from "../database/store.ts";
import { type AccessToken, findAccessTokens } from "./access-tokens.ts";

export interface AuthenticatorOptions {
  readonly store: Pick<CallStore, "lane" | "db">;
  readonly clock: Pick<Clock, "nowMs">;
  /** How long an answer of the record holds, and so how long a revoked token may still be good. Default 1 s. */
  readonly cacheMs?: number;
  /** Tokens remembered at most; the oldest answer is forgotten for a new one. Default 1,000. */
  readonly cacheLimit?: number;
  /** Told of each use of a token that is good. It must not block. */
  onUse?(id: string): void;
}

/** What the record says of a token. */
type Finding =
  | { readonly kind: "good"; readonly caller: KnownCaller }
  | { readonly kind: "expired" | "revoked"; readonly id: string; readonly atMs: number; readonly isSession: boolean }
  | { readonly kind: "unknown" };

interface Answer {
  readonly finding: Promise<Finding>;
  readonly untilMs: number;
}

/** Tokens that are asked for in one question. */
const MOST_AT_ONCE = 500;
/** Tokens that may wait for the record, a few milliseconds as a rule. */
const MOST_WAITING = 10_000;

/**
 * The hash under which a bearer token is kept: SHA-256 of its whole text, 32 bytes. Tokens are random and long, so a
 * slow hash would protect nothing.
 */
export function accessTokenHash(token: string): Buffer {
  return createHash("sha256").update(token, "utf8").digest();
}

/**
 * Find callers by the access tokens of the record. A token is looked up by its hash, so no comparison of secrets takes
 * a time that tells anything of them. It rejects with TOKEN_EXPIRED or TOKEN_REVOKED, which only the holder of the
 * right text can learn, and while the store is away; the latter answer is never remembered.
 *
 * Tokens that are not remembered are asked for together, in one question at a time: however many strangers try tokens,
 * that takes one connection. Beyond what may wait it rejects with OVERLOADED.
 */
export function createAuthenticator(options: AuthenticatorOptions): Authenticator {
  const { store, clock, cacheMs = 1_000, cacheLimit = 1_000, onUse } = options;
  const answers = new Map<string, Answer>();
  const lookups = new Batcher<Buffer, AccessToken | null>({
    run: (hashes) => findAccessTokens(store.db, hashes),
    maxItems: MOST_AT_ONCE,
    maxWaitMs: 0,
    maxQueued: MOST_WAITING,
  });

  const ask = (key: string, hash: Buffer): Promise<Finding> => {
    const finding = lookups.submit(hash).then(findingOf);
    // The age counts from the question: an answer is never older than it claims to be.
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

function findingOf(token: AccessToken | null): Finding {
  // A token with a role of a newer version is refused here, rather than given a guessed role.
  if (token === null || !isRole(token.role)) return { kind: "unknown" };
  const { id, role, expiresAtMs, revocation, session } = token;
  const isSession = session !== null;
  if (revocation !== null) return { kind: "revoked", id, atMs: revocation.atMs, isSession };
  if (expiresAtMs === null) return { kind: "good", caller: { kind: "token", id, role } };
  if (token.isExpired) return { kind: "expired", id, atMs: expiresAtMs, isSession };
  const caller = session === null ? { kind: "token" as const, id } : { ...session, session: id };
  return { kind: "good", caller: { ...caller, role, expiresAtMs } };
}

/** What is used with a call: an access token, a session of the console, or both. */
function tokensOf(caller: KnownCaller): readonly string[] {
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
          : `access token ${id} ${verb} at ${at}: ask an admin for another one`,
        { metadata: { token: id, at } },
      );
    }
  }
}

/** A Map iterates in the order of insertion, so the first is the one that was asked for longest ago. */
function makeRoom(answers: Map<string, Answer>, limit: number): void {
  for (const key of answers.keys()) {
    if (answers.size < limit) return;
    answers.delete(key);
  }
}
