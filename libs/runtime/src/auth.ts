import type { DescMethod } from "@bufbuild/protobuf";
import { createContextKey, type HandlerContext } from "@connectrpc/connect";
import type { Role } from "./policy.ts";

/** Who makes a call, as far as an access token tells. A node's identity is not here: its proof is part of the message. */
export type Caller =
  | { readonly kind: "anonymous" }
  /** The holder of an access token. */
  | {
      readonly kind: "token";
      readonly id: string;
      readonly role: Role;
      /** From when on it is worth nothing, by the wall clock; absent for never. */
      readonly expiresAtMs?: number;
    }
  /** Somebody, or a program, whom an OpenID Connect issuer vouches for. */
  | {
      readonly kind: "person";
      readonly issuer: string;
      /** With the prefix that the configuration gives it: unique among all issuers. */
      readonly subject: string;
      readonly role: Role;
      /** When what the issuer said runs out, by the wall clock. */
      readonly expiresAtMs: number;
    };

/** A caller who is somebody. */
export type KnownCaller = Exclude<Caller, { readonly kind: "anonymous" }>;

/**
 * Find whose token this is; null when it is nobody's. It throws TOKEN_EXPIRED, TOKEN_REVOKED or ROLE_TOO_LOW when it is somebody's who may
 * not call with it, and another error when it cannot know (the store is away), never answers null then.
 */
export type Authenticator = (bearer: string) => Promise<Caller | null>;

/**
 * Check that another replica of the cluster calls a method, by the call's authorization header, null when it has none. It is asked before
 * anything of the request is read. Throws REPLICA_CREDENTIALS_INVALID.
 */
export type ReplicaAuthenticator = (method: DescMethod, authorization: string | null) => void;

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

/** How a caller is written in events and in the audit log: "token:<id>", "user:<subject>" or "anonymous". */
export function actorOf(caller: Caller): string {
  switch (caller.kind) {
    case "anonymous":
      return "anonymous";
    case "token":
      return `token:${caller.id}`;
    case "person":
      return `user:${caller.subject}`;
  }
}

const RANKS = { viewer: 1, operator: 2, admin: 3 } as const satisfies Record<Role, number>;

/** Whether a role may do what needs another one. */
export function roleSuffices(has: Role, needs: Role): boolean {
  return RANKS[has] >= RANKS[needs];
}

/** The token of an `authorization: Bearer <token>` header; null when there is none in that form. */
export function bearerOf(authorization: string | null): string | null {
  return authorization?.match(/^bearer +([\x21-\x7e]{1,8192})$/i)?.[1] ?? null;
}
