import { createContextKey, type HandlerContext } from "@connectrpc/connect";
import { ANONYMOUS, type Caller } from "@rollcall/identity";

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
