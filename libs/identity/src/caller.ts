import type { DescMethod } from "@bufbuild/protobuf";

/**
 * What a token's holder may do. An operator may do what a viewer may, and an admin all. A submitter reads as a viewer
 * does and runs work, which an operator may not.
 */
export const ROLES = ["viewer", "operator", "submitter", "admin"] as const;

export type Role = (typeof ROLES)[number];

/** Whether a text is a role. */
export function isRole(text: string): text is Role {
  return ROLES.some((role) => role === text);
}

/**
 * Who makes a call, as far as an access token tells. A node's identity is not here: its proof is part of the message.
 */
export type Caller =
  | { readonly kind: "anonymous" }
  /** The holder of an access token. */
  | {
      readonly kind: "token";
      readonly id: string;
      readonly role: Role;
      /** From when on it is worth nothing, by the wall clock; absent for never. */
      readonly expiresAtMs?: number;
      /** The session of the console that acts for the token; absent for who comes with the token itself. */
      readonly session?: string;
    }
  /** A person or program that an OpenID Connect issuer vouches for. */
  | {
      readonly kind: "person";
      readonly issuer: string;
      /** With the prefix that the configuration gives it: unique among all issuers. */
      readonly subject: string;
      readonly role: Role;
      /** When what the issuer said, or the session, runs out, by the wall clock. */
      readonly expiresAtMs: number;
      /** The claim by which the issuer says that it left out groups, so that they give no role; absent for none. */
      readonly groupsLeftOut?: string;
      /** The session of the console that acts for the person; absent for who comes with the issuer's token. */
      readonly session?: string;
    };

/** A caller whose identity is known. */
export type KnownCaller = Exclude<Caller, { readonly kind: "anonymous" }>;

/**
 * Find whose token this is; null when it is unknown. It throws TOKEN_EXPIRED, TOKEN_REVOKED or ROLE_TOO_LOW when it is
 * a caller's that may not call with it, and another error when it cannot know (the store is away), never returns null
 * then.
 */
export type Authenticator = (bearer: string) => Promise<Caller | null>;

/**
 * Check that another replica of the cluster calls a method, by the call's authorization header, null when it has none.
 * It is asked before anything of the request is read. Throws REPLICA_CREDENTIALS_INVALID.
 */
export type ReplicaAuthenticator = (method: DescMethod, authorization: string | null) => void;

/** The caller of a method that asks for no token. */
export const ANONYMOUS: Caller = { kind: "anonymous" };

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

/** Whether a role may do what needs another one. */
export function roleSuffices(has: Role, needs: Role): boolean {
  switch (needs) {
    case "viewer":
      return true;
    case "operator":
    case "submitter":
      return has === needs || has === "admin";
    case "admin":
      return has === "admin";
  }
}

/** The most characters that a token has. Those of issuers come near it when they name many groups. */
export const LONGEST_TOKEN = 16_384;

/** The token of an `authorization: Bearer <token>` header; null when there is none in that form, or it is too long. */
export function bearerOf(authorization: string | null): string | null {
  const bearer = authorization?.match(/^bearer +([\x21-\x7e]+)$/i)?.[1] ?? null;
  return bearer === null || bearer.length > LONGEST_TOKEN ? null : bearer;
}
