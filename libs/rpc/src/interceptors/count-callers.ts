import type { ContextValues, Interceptor } from "@connectrpc/connect";
import { actorOf, type KnownCaller } from "@rollcall/identity";
import { callerKey, onKnownKey, placeKey } from "../calls/call-context.ts";

/**
 * Count calls for their callers, once it is known who they are: see CallAdmission. Their places were taken before
 * anything was decoded.
 */
export const countCallers: Interceptor = (next) => async (request) => {
  const caller = request.contextValues.get(callerKey);
  if (caller.kind !== "anonymous") countFor(caller, request.contextValues);
  return await next(request);
};

/** Count a call, and its connection, for its caller, who is known now. Throws when the caller has as many as may be. */
export function countFor(caller: KnownCaller, values: ContextValues): void {
  // Pages of a browser must not take the places of the programs that have the same token.
  const party = caller.session === undefined ? actorOf(caller) : `${actorOf(caller)} in session ${caller.session}`;
  values.get(placeKey)?.claim(party);
  values.get(onKnownKey)("known");
}

/**
 * Let each caller have so many calls at work at a time. Inside of what bounds the duration of calls: a call that waits
 * does so within the deadline, and a call whose caller stopped waiting keeps its turn until its work has ended.
 */
export const takeTurns: Interceptor = (next) => async (request) => {
  const place = request.contextValues.get(placeKey);
  if (request.stream || place === null) return await next(request);
  const end = await place.turn(request.signal);
  try {
    return await next(request);
  } finally {
    end();
  }
};
