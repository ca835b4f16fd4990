import { createHash } from "node:crypto";
import type { Interceptor } from "@connectrpc/connect";
import { type ErrorReasonName, reasonOf, refuse } from "@rollcall/errors";
import type { Clock } from "@rollcall/process";
import { callerKey, peerKey } from "../calls/call-context.ts";
import { needsRole } from "../calls/find-caller.ts";
import { methodName, type PolicyTable } from "../calls/policy.ts";

/**
 * Limits failed attempts by the address that they come from. The domain's FailureLimiter implements it. Times are in
 * monotonic milliseconds.
 */
export interface FailureLimits {
  msUntilAllowed(peer: string, credential: string, nowMs: number): number;
  failed(peer: string, credential: string, nowMs: number): void;
  passed(credential: string): void;
}

/** Reasons that reject the presented credential. A caller that keeps trying may be guessing. */
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
  /** The kind of credential: a bearer token, or a node's proof. */
  readonly kind: "token" | "node";
  /** The address that the attempt comes from, as HOST:PORT. */
  readonly peer: string;
  /** A string that identifies the credential without revealing it. */
  readonly credential: string;
}

type Request = Parameters<Parameters<Interceptor>[0]>[0];

/** Describe an attempt with an authorization header. */
export function tokenAttempt(peer: string, authorization: string): Attempt {
  const credential = createHash("sha256").update(authorization).digest("base64");
  return { kind: "token", peer, credential };
}

/**
 * Describe a node's attempt. The node is remembered together with its host, so that an anonymous client that claims
 * the node's id from another host is not mistaken for the node.
 */
export function nodeAttempt(peer: string, nodeId: string): Attempt {
  return { kind: "node", peer, credential: `${peer.replace(/:\d+$/, "")} ${nodeId}` };
}

/** Refuses callers that fail too often. All servers of a process share one object. */
export class FailedAttempts {
  readonly #limits: Readonly<Record<Attempt["kind"], FailureLimits>>;
  readonly #clock: Pick<Clock, "nowMs">;

  /**
   * @param limits the limits for each kind of credential. They differ, because hundreds of nodes can share one
   *   address, but only a few people do.
   */
  constructor(limits: Readonly<Record<Attempt["kind"], FailureLimits>>, clock: Pick<Clock, "nowMs">) {
    this.#limits = limits;
    this.#clock = clock;
  }

  /** Check whether an attempt is allowed. Throws TOO_MANY_FAILURES. */
  check({ kind, peer, credential }: Attempt): void {
    const retryAfterMs = this.#limits[kind].msUntilAllowed(peer, credential, this.#clock.nowMs());
    if (retryAfterMs === 0) return;
    const message = "too many failed attempts from this address; check the token or the key, and try again later";
    throw refuse("TOO_MANY_FAILURES", message, { retryAfterMs });
  }

  /** Remember a successful attempt. */
  passed({ kind, credential }: Attempt): void {
    this.#limits[kind].passed(credential);
  }

  /** Count the attempt as failed if the error means that the credential was rejected. */
  ended({ kind, peer, credential }: Attempt, error: unknown): void {
    const reason = reasonOf(error);
    if (reason === undefined || !FAILURES.has(reason)) return;
    this.#limits[kind].failed(peer, credential, this.#clock.nowMs());
  }
}

/** Limit attempts to guess credentials: see FailedAttempts. */
export function limitFailures(policies: PolicyTable, failures: FailedAttempts): Interceptor {
  return (next) => async (request) => {
    const attempt = attemptOf(policies, request);
    if (attempt === null) return await next(request);
    // Check nodes only: tokens were already checked with the headers of the call.
    if (attempt.kind === "node") failures.check(attempt);
    try {
      const response = await next(request);
      failures.passed(attempt);
      return response;
    } catch (error) {
      // Remember the credential if the caller is known: its token is valid, and the call was refused for another
      // reason.
      if (request.contextValues.get(callerKey).kind !== "anonymous") failures.passed(attempt);
      else failures.ended(attempt, error);
      throw error;
    }
  };
}

/** The credential that a call presents; null if it presents none. */
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
