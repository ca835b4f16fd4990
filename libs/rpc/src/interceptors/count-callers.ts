import type { ContextValues, Interceptor } from "@connectrpc/connect";
import { actorOf, type IdentifiedCaller } from "@rollcall/identity";
import { callerKey, callSlotKey, onKnownKey } from "../calls/call-context.ts";
import { methodName, type PolicyTable } from "../calls/policy.ts";

/**
 * Count calls for their callers once the callers are identified: see CallAdmission. Each call took a slot before any of
 * it was decoded.
 */
export const countCallers: Interceptor = (next) => async (request) => {
  const caller = request.contextValues.get(callerKey);
  if (caller.kind !== "anonymous") countFor(caller, request.contextValues);
  return await next(request);
};

/**
 * Count a call for its newly identified caller, and report that its connection has a known caller. Throws if the caller
 * is at its limit.
 */
export function countFor(caller: IdentifiedCaller, values: ContextValues): void {
  // Count console sessions separately, so that a browser's pages do not use up the slots of programs with the same
  // token.
  const party = caller.session === undefined ? actorOf(caller) : `${actorOf(caller)} in session ${caller.session}`;
  values.get(callSlotKey)?.claim(party);
  values.get(onKnownKey)("known");
}

/**
 * The share of a call's deadline that the call can spend in the queue. The rest is left for getting a database
 * connection and doing the work.
 */
const SHARE_OF_DEADLINE = 1 / 3;

/**
 * Limit how many calls of each caller work at a time. Must run inside the interceptor that bounds the duration of
 * calls. A call waits for at most a third of its deadline, so that its refusal can give the reason. If its caller stops
 * waiting while the call works, the call keeps its slot until its work has ended.
 */
export function takeTurns(policies: PolicyTable): Interceptor {
  return (next) => async (request) => {
    const place = request.contextValues.get(callSlotKey);
    if (request.stream || place === null) return await next(request);
    const deadlineMs = policies[methodName(request.method)]?.deadlineMs ?? 0;
    const end = await place.turn(request.signal, deadlineMs * SHARE_OF_DEADLINE);
    try {
      return await next(request);
    } finally {
      end();
    }
  };
}
