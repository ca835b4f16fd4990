import { createHash } from "node:crypto";
import type { Interceptor } from "@connectrpc/connect";
import { type ErrorReasonName, reasonOf, refuse } from "@rollcall/errors";
import type { Clock } from "@rollcall/process";
import { callerKey, peerKey } from "../calls/call-context.ts";
import { needsRole } from "../calls/find-caller.ts";
import { methodName, type PolicyTable } from "../calls/policy.ts";

/**
 * What limits failed attempts by where they come from. The domain's FailureLimiter is one; times are monotonic
 * milliseconds.
 */
export interface FailureLimits {
  msUntilAllowed(peer: string, credential: string, nowMs: number): number;
  failed(peer: string, credential: string, nowMs: number): void;
  passed(credential: string): void;
}

/** Reasons that say that what was presented is not good: a caller who tries on may be guessing. */
const FAILURES: ReadonlySet<ErrorReasonName> = new Set<ErrorReasonName>([
  "TOKEN_INVALID",
  "TOKEN_EXPIRED",
  "TOKEN_REVOKED",
  "PROOF_INVALID",
  "CHALLENGE_INVALID",
  "NEXT_KEY_PROOF_INVALID",
  "NODE_KEY_MISMATCH",
  "NODE_KEY_RETIRED",
  "SESSION_TOKEN_INVALID",
  "JOIN_TOKEN_INVALID",
  "JOIN_TOKEN_EXPIRED",
  "JOIN_TOKEN_REVOKED",
  "JOIN_TOKEN_USED_UP",
  "JOIN_TOKEN_NAME_MISMATCH",
  "JOIN_TOKEN_WRONG_CLUSTER",
  "SERVICE_ACCOUNT_TOKEN_INVALID",
  "SERVICE_ACCOUNT_NOT_ADMITTED",
  "SIGN_IN_CODE_INVALID",
  "SIGN_IN_CODE_USED",
  "SIGN_IN_FAILED",
]);

/** One attempt to prove an identity. */
export interface Attempt {
  /** What is presented: a bearer token, or a node's proof. */
  readonly kind: "token" | "node";
  /** Where it comes from, as HOST:PORT. */
  readonly peer: string;
  /** Names the credential without revealing it. */
  readonly credential: string;
}

type Request = Parameters<Parameters<Interceptor>[0]>[0];

/** An attempt with an authorization header. */
export function tokenAttempt(peer: string, authorization: string): Attempt {
  const credential = createHash("sha256").update(authorization).digest("base64");
  return { kind: "token", peer, credential };
}

/**
 * A node's attempt. It is known as it is seen from its host: a stranger elsewhere who claims its id is not taken for
 * it.
 */
export function nodeAttempt(peer: string, nodeId: string): Attempt {
  return { kind: "node", peer, credential: `${peer.replace(/:\d+$/, "")} ${nodeId}` };
}

/** Refuses callers that fail too often. All servers of a process share one. */
export class FailedAttempts {
  readonly #limits: Readonly<Record<Attempt["kind"], FailureLimits>>;
  readonly #clock: Pick<Clock, "nowMs">;

  /** @param limits of each kind: hundreds of nodes may share one address, and few people do. */
  constructor(limits: Readonly<Record<Attempt["kind"], FailureLimits>>, clock: Pick<Clock, "nowMs">) {
    this.#limits = limits;
    this.#clock = clock;
  }

  /** Check that an attempt may be looked at. Throws TOO_MANY_FAILURES. */
  check({ kind, peer, credential }: Attempt): void {
    const retryAfterMs = this.#limits[kind].msUntilAllowed(peer, credential, this.#clock.nowMs());
    if (retryAfterMs === 0) return;
    const message =
      "too many attempts with bad credentials came from this address; check the token or the key, and try again later";
    throw refuse("TOO_MANY_FAILURES", message, { retryAfterMs });
  }

  /** Remember an attempt that was good. */
  passed({ kind, credential }: Attempt): void {
    this.#limits[kind].passed(credential);
  }

  /** Count an attempt that ended with an error, if that says that the credential is not good. */
  ended({ kind, peer, credential }: Attempt, error: unknown): void {
    const reason = reasonOf(error);
    if (reason === undefined || !FAILURES.has(reason)) return;
    this.#limits[kind].failed(peer, credential, this.#clock.nowMs());
  }
}

/** Limit guesses of credentials: see FailedAttempts. */
export function limitFailures(policies: PolicyTable, failures: FailedAttempts): Interceptor {
  return (next) => async (request) => {
    const attempt = attemptOf(policies, request);
    if (attempt === null) return await next(request);
    // Tokens were checked with the call's headers.
    if (attempt.kind === "node") failures.check(attempt);
    try {
      const response = await next(request);
      failures.passed(attempt);
      return response;
    } catch (error) {
      // A caller that is known and refused for another reason still has a valid token.
      if (request.contextValues.get(callerKey).kind !== "anonymous") failures.passed(attempt);
      else failures.ended(attempt, error);
      throw error;
    }
  };
}

/** What a call presents; null when that is nothing. */
function attemptOf(policies: PolicyTable, request: Request): Attempt | null {
  const caller = policies[methodName(request.method)]?.caller ?? "anyone";
  const peer = request.contextValues.get(peerKey);
  if (needsRole(caller)) {
    const authorization = request.header.get("authorization");
    return authorization === null ? null : tokenAttempt(peer, authorization);
  }
  if (caller !== "node" || request.stream || !("nodeId" in request.message)) return null;
  return nodeAttempt(peer, String(request.message.nodeId));
}
