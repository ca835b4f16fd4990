import { createContextKey, type HandlerContext } from "@connectrpc/connect";
import type { Role } from "./policy.ts";

/** Who makes a call, as far as an access token tells. A node's identity is not here: its proof is part of the message. */
export type Caller =
  | { readonly kind: "anonymous" }
  | { readonly kind: "token"; readonly id: string; readonly role: Role };

/**
 * Find whose access token this is; null when it is nobody's.
 * It throws when it cannot know (the store is away), never answers null then.
 */
export type Authenticator = (bearer: string) => Promise<Caller | null>;

/** The caller of a method that asks for no token. */
export const ANONYMOUS: Caller = { kind: "anonymous" };

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

/** How a caller is written in events and in the audit log: "token:<id>" or "anonymous". */
export function actorOf(caller: Caller): string {
  return caller.kind === "token" ? `token:${caller.id}` : "anonymous";
}

const RANKS = { viewer: 1, operator: 2, admin: 3 } as const satisfies Record<Role, number>;

/** Whether a role may do what needs another one. */
export function roleSuffices(has: Role, needs: Role): boolean {
  return RANKS[has] >= RANKS[needs];
}

/** The token of an `authorization: Bearer <token>` header; null when there is none in that form. */
export function bearerOf(authorization: string | null): string | null {
  return authorization?.match(/^bearer +([\x21-\x7e]{1,4096})$/i)?.[1] ?? null;
}
