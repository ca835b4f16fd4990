import { createHash } from "node:crypto";
import type { Authenticator, Caller, Clock, Role } from "@rollcall/runtime";
import { findAccessToken } from "./access-tokens.ts";
import type { Store } from "./store.ts";

export interface AuthenticatorOptions {
  readonly store: Pick<Store, "db">;
  readonly clock: Pick<Clock, "nowMs">;
  /** How long an answer of the record holds, and so how long a revoked token may still be good. Default 1 s. */
  readonly cacheMs?: number;
  /** Tokens remembered at most; the oldest answer is forgotten for a new one. Default 1,000. */
  readonly cacheLimit?: number;
}

interface Answer {
  readonly caller: Promise<Caller | null>;
  readonly untilMs: number;
}

/**
 * The hash under which a bearer token is kept: SHA-256 of its whole text, 32 bytes. Tokens are random and long, so a
 * slow hash would protect nothing.
 */
export function accessTokenHash(token: string): Buffer {
  return createHash("sha256").update(token, "utf8").digest();
}

/**
 * Find callers by the access tokens of the record. A token is looked up by its hash, so no comparison of secrets takes
 * a time that tells anything of them. It rejects while the store is away; such an answer is never remembered.
 */
export function createAuthenticator(options: AuthenticatorOptions): Authenticator {
  const { store, clock, cacheMs = 1_000, cacheLimit = 1_000 } = options;
  const answers = new Map<string, Answer>();

  const ask = (key: string, hash: Buffer): Promise<Caller | null> => {
    const caller = findCaller(store, hash);
    // The age counts from the question: an answer is never older than it claims to be.
    const answer = { caller, untilMs: clock.nowMs() + cacheMs };
    answers.delete(key);
    makeRoom(answers, cacheLimit);
    answers.set(key, answer);
    caller.catch(() => {
      if (answers.get(key) === answer) answers.delete(key);
    });
    return caller;
  };

  return (bearer) => {
    const hash = accessTokenHash(bearer);
    const key = hash.toString("base64");
    const known = answers.get(key);
    if (known !== undefined && clock.nowMs() < known.untilMs) return known.caller;
    return ask(key, hash);
  };
}

async function findCaller(store: Pick<Store, "db">, hash: Buffer): Promise<Caller | null> {
  const token = await findAccessToken(store.db, hash);
  // A role of a newer version is nobody here rather than somebody with a guessed role.
  if (token === null || !isRole(token.role)) return null;
  return { kind: "token", id: token.id, role: token.role };
}

/** A Map iterates in the order of insertion, so the first is the one that was asked for longest ago. */
function makeRoom(answers: Map<string, Answer>, limit: number): void {
  for (const key of answers.keys()) {
    if (answers.size < limit) return;
    answers.delete(key);
  }
}

function isRole(role: string): role is Role {
  return role === "viewer" || role === "operator" || role === "admin";
}
