import type { DescMethod } from "@bufbuild/protobuf";

/**
 * The roles that a token can have. An operator has all rights of a viewer, and an admin has all rights. A submitter
 * can read like a viewer and can also run work, which an operator cannot.
 */
export const ROLES = ["viewer", "operator", "submitter", "admin"] as const;

export type Role = (typeof ROLES)[number];

export function isRole(text: string): text is Role {
  return ROLES.some((role) => role === text);
}

/**
 * The caller, according to the access token of the call. Nodes are not callers: their proof of identity is part of the
 * message.
 */
export type Caller =
  | { readonly kind: "anonymous" }
  /** The holder of an access token. */
  | {
      readonly kind: "token";
      readonly id: string;
      readonly role: Role;
      /** When the token expires, by the wall clock; absent when it never expires. */
      readonly expiresAtMs?: number;
      /** The console session that acts for the token; absent when the caller presents the token itself. */
      readonly session?: string;
    }
  /** A person or program authenticated by an OpenID Connect issuer. */
  | {
      readonly kind: "person";
      readonly issuer: string;
      /** Includes the configured prefix, so it is unique among all issuers. */
      readonly subject: string;
      readonly role: Role;
      /** When the issuer's token or the session expires, by the wall clock. */
      readonly expiresAtMs: number;
      /**
       * The claim by which the issuer indicates that it omitted the groups from the token, so that no group grants a
       * role. Absent when no groups were omitted.
       */
      readonly groupsLeftOut?: string;
      /** The console session that acts for the person; absent when the caller presents the issuer's token itself. */
      readonly session?: string;
    };

export type IdentifiedCaller = Exclude<Caller, { readonly kind: "anonymous" }>;

/**
 * Find the caller of a token; null when the token is unknown. Throws TOKEN_EXPIRED, TOKEN_REVOKED or ROLE_TOO_LOW when
 * the caller is known but cannot use the token. Throws another error when the store is unavailable.
 */
export type Authenticator = (bearer: string) => Promise<Caller | null>;

/**
 * Check that the caller of a method is another replica of the cluster. `authorization` is the call's header, or null
 * when there is none. Runs before the request is read. Throws REPLICA_CREDENTIALS_INVALID.
 */
export type ReplicaAuthenticator = (method: DescMethod, authorization: string | null) => void;

/** The caller of a method that needs no token. */
export const ANONYMOUS: Caller = { kind: "anonymous" };

/** Format a caller for events and the audit log: "token:<id>", "user:<subject>" or "anonymous". */
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

/** Whether a role has all rights of another role. */
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

/** Maximum length of a token in characters. Tokens that list many groups come close to this limit. */
export const LONGEST_TOKEN = 16_384;

/**
 * The token in an `authorization: Bearer <token>` header; null when the header has another form or the token is too
 * long.
 */
export function bearerOf(authorization: string | null): string | null {
  const bearer = authorization?.match(/^bearer +([\x21-\x7e]+)$/i)?.[1] ?? null;
  return bearer === null || bearer.length > LONGEST_TOKEN ? null : bearer;
}
