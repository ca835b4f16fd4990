import type { Decided } from "../decided.ts";
import type { Json, NewEvent } from "../events/events.ts";
import { type Refusal, refused } from "../refusal.ts";

/** Whether an access token is accepted. A token that expired before it was revoked is REVOKED. */
export type AccessTokenState = "VALID" | "EXPIRED" | "REVOKED";

/** The facts that determine a token's state. The store's AccessToken has these fields. */
export interface AccessTokenFacts {
  readonly id: string;
  readonly name: string;
  readonly role: string;
  readonly isExpired: boolean;
  /** The time and actor of the revocation; null if the token is not revoked. */
  readonly revocation: object | null;
}

/** Why a token cannot be revoked. */
export type RevocationRefusal = Refusal<"ROLE_TOO_LOW" | "ACCESS_TOKEN_ALREADY_REVOKED">;

/** The caller that wants to revoke a token. */
export interface Revoker {
  /** The id of the caller's access token; null if the caller did not use one. */
  readonly tokenId: string | null;
  /** The id of the caller's console session; null if the caller has none. */
  readonly sessionId: string | null;
  readonly role: string;
}

export function accessTokenState(token: AccessTokenFacts): AccessTokenState {
  if (token.revocation !== null) return "REVOKED";
  return token.isExpired ? "EXPIRED" : "VALID";
}

/** Why a caller cannot revoke other callers' tokens; null if it can. Checked before the token is looked up. */
export function anonymousTokenRefusal(id: string, by: Revoker): RevocationRefusal | null {
  if (by.role === "admin" || isOwn(id, by)) return null;
  return {
    reason: "ROLE_TOO_LOW",
    message: `revoking access token ${id} requires the role admin, not ${by.role}; any token can revoke itself`,
    metadata: { required: "admin", role: by.role, token: id },
  };
}

/**
 * Decide to revoke a token. The effect says who revokes it and why. An expired token can be revoked too, to record
 * that it is no longer used.
 */
export function endAccessToken(
  token: AccessTokenFacts,
  by: Revoker & { readonly actor: string; readonly message: string },
): Decided<{ readonly actor: string; readonly reason: string }, RevocationRefusal["reason"]> {
  const { id } = token;
  if (token.revocation !== null) {
    const message = `access token ${id} was already revoked`;
    return refused("ACCESS_TOKEN_ALREADY_REVOKED", message, { token: id });
  }
  const revocation = { actor: by.actor, reason: by.message };
  return { ok: true, effects: [revocation], events: [accessTokenRevoked(token, by)] };
}

/** The event of a created token. The lifetime is in milliseconds; null means that the token never expires. */
export function accessTokenCreated(
  token: Pick<AccessTokenFacts, "id" | "name" | "role">,
  ttlMs: number | null,
  actor: string,
): NewEvent {
  const after: Json = { name: token.name, role: token.role, ttlMs };
  const what = { type: "access.token.created", subject: token.id, message: "" } as const;
  return { ...what, actor, reason: "ADMIN_CREATED", before: null, after };
}

/** The event of a token that was revoked by an admin or by its holder. */
function accessTokenRevoked(
  token: AccessTokenFacts,
  by: Revoker & { readonly actor: string; readonly message: string },
): NewEvent {
  const { actor, message } = by;
  const reason = isOwn(token.id, by) ? "SELF_REVOKED" : "ADMIN_REVOKED";
  const before: Json = { state: accessTokenState(token) };
  const what = { type: "access.token.revoked", subject: token.id, before } as const;
  return { ...what, actor, reason, message, after: { state: "REVOKED" } };
}

function isOwn(id: string, { tokenId, sessionId }: Revoker): boolean {
  return tokenId === id || sessionId === id;
}
