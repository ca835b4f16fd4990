import type { Interceptor } from "@connectrpc/connect";
import { callerKey, peerKey } from "../calls/call-context.ts";
import { needsRole } from "../calls/find-caller.ts";
import { methodName, type PolicyTable } from "../calls/policy.ts";
import { type Attempt, type FailedAttempts, nodeAttempt, tokenAttempt } from "../limits/failed-attempts.ts";

type Request = Parameters<Parameters<Interceptor>[0]>[0];

/** Limit guesses of credentials: see FailedAttempts. */
export function limitFailures(policies: PolicyTable, failures: FailedAttempts): Interceptor {
  return (next) => async (request) => {
    const attempt = attemptOf(policies, request);
    if (attempt === null) return await next(request);
    failures.check(attempt);
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
