import { type ContextValues, createContextKey, type HandlerContext } from "@connectrpc/connect";
import { ANONYMOUS, bearerOf, type Caller } from "@rollcall/identity";
import type { CallSlot } from "../limits/call-admission.ts";
import type { Identity } from "./find-caller.ts";

/** The values of a call, which its interceptors and its handler share. */
export type CallContext = Pick<HandlerContext, "values">;

/** The caller, stored by the authorizing interceptor. */
export const callerKey = createContextKey<Caller>(ANONYMOUS, {
  description: "caller of this call",
});

/** The full access token of a call that requires a role. */
export function bearerIn({ requestHeader }: Pick<HandlerContext, "requestHeader">): string {
  const bearer = bearerOf(requestHeader.get("authorization"));
  if (bearer === null) throw new Error("a caller with a role sent no token");
  return bearer;
}

/** The request id, stored by the request id interceptor. */
export const requestIdKey = createContextKey<string>("", { description: "x-request-id" });

/** Get the caller of this call. It is anonymous for methods whose policy requires no token. */
export function callerOf(context: CallContext): Caller {
  return context.values.get(callerKey);
}

/** Get the id of this call, which is in the log and in the response's x-request-id header. */
export function requestIdOf(context: CallContext): string {
  return context.values.get(requestIdKey);
}

/** The address that a call comes from, as HOST:PORT, or only HOST if a proxy gave no port. */
export const peerKey = createContextKey<string>("", { description: "address of the caller" });

/** Get the address that a call comes from: see peerKey. */
export function peerOfCall(context: CallContext): string {
  return context.values.get(peerKey);
}

/** Whether the call reached the interceptors. If not, the log has no line about it. */
export const seenKey = createContextKey<boolean>(false, { description: "whether the log has a line about the call" });

/** Called when the server finds out that a call comes from an authenticated caller or from a replica. */
export const onKnownKey = createContextKey<(by: "known" | "replica") => void>(() => {}, {
  description: "called when the caller is known",
});

/**
 * Ends the call. The controller is aborted when the call has ended for any reason. The implementation and every
 * interceptor share its signal, which is the request's signal, because each signal costs 1.2 KB per watch.
 */
export const endingKey = createContextKey<AbortController | null>(null, { description: "ends the call" });

/** Get the controller that ends a call. */
export function endingOf(values: ContextValues): AbortController {
  const ending = values.get(endingKey);
  if (ending === null) throw new Error("this call has no AbortController");
  return ending;
}

/**
 * The identity of the caller, found from the call's headers before the request is decoded. Null for a method that
 * requires no role.
 */
export const identityKey = createContextKey<Promise<Identity> | null>(null, { description: "identity of the caller" });

/** The call's slot among the calls in progress; null if calls are not counted. */
export const callSlotKey = createContextKey<CallSlot | null>(null, { description: "slot of the call" });
