import type { Interceptor } from "@connectrpc/connect";
import { actorOf } from "@rollcall/identity";
import { callerKey, onKnownKey, placeKey } from "../calls/call-context.ts";

/**
 * Count calls for their callers, once it is known who they are: see CallDoor. Their places were taken before anything
 * was decoded.
 */
export const countCallers: Interceptor = (next) => async (request) => {
  const caller = request.contextValues.get(callerKey);
  const place = request.contextValues.get(placeKey);
  if (caller.kind !== "anonymous") {
    place?.claim(actorOf(caller));
    request.contextValues.get(onKnownKey)("known");
  }
  return await next(request);
};

/**
 * Let each caller have so many calls at work at a time. Inside of what bounds the duration of calls: whoever waits does
 * so within the deadline, and a call whose caller stopped waiting keeps its turn until its work has ended.
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
