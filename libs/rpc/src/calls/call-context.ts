import { type ContextValues, createContextKey, type HandlerContext } from "@connectrpc/connect";
import { ANONYMOUS, type Caller } from "@rollcall/identity";
import type { CallPlace } from "../limits/call-admission.ts";
import type { Identity } from "./find-caller.ts";

/** Where the authorising interceptor leaves the caller. */
export const callerKey = createContextKey<Caller>(ANONYMOUS, {
  description: "who makes this call",
});

/** Where the request id interceptor leaves the request id. */
export const requestIdKey = createContextKey<string>("", { description: "x-request-id" });

/** Who makes this call. Anonymous for methods whose policy asks for no token. */
export function callerOf(context: Pick<HandlerContext, "values">): Caller {
  return context.values.get(callerKey);
}

/** The id that names this call in the log and in the answer's x-request-id header. */
export function requestIdOf(context: Pick<HandlerContext, "values">): string {
  return context.values.get(requestIdKey);
}

/** The address that a call comes from, as HOST:PORT; HOST alone where a proxy named no port. */
export const peerKey = createContextKey<string>("", { description: "address of the caller" });

/** The address that a call comes from: see peerKey. */
export function peerOfCall(context: Pick<HandlerContext, "values">): string {
  return context.values.get(peerKey);
}

/** Whether the call got as far as the interceptors; one that did not has left no line in the log. */
export const seenKey = createContextKey<boolean>(false, { description: "seen by the log" });

/** Told when the call turns out to be of a known caller or of a replica. */
export const onKnownKey = createContextKey<(by: "known" | "replica") => void>(() => {}, {
  description: "on a known caller",
});

/**
 * Ends the call: its signal is that of the request, for the implementation and for every interceptor. One for all of
 * them, since a signal takes 1.2 KB of a watch. It is aborted once the call is over, however it ended.
 */
export const endingKey = createContextKey<AbortController | null>(null, { description: "ends the call" });

/** What ends a call. */
export function endingOf(values: ContextValues): AbortController {
  const ending = values.get(endingKey);
  if (ending === null) throw new Error("nothing ends this call");
  return ending;
}

/**
 * Who makes the call, found by its headers before its request is decoded. Null for a method that needs no role.
 */
export const identityKey = createContextKey<Promise<Identity> | null>(null, { description: "identity of the caller" });

/** The place that the call has among those under way; null where they are not counted. */
export const placeKey = createContextKey<CallPlace | null>(null, { description: "its place" });
