import type { Decided } from "../decided.ts";
import type { Json, NewEvent } from "../events/events.ts";
import { type Refusal, refused } from "../refusal.ts";

/** Whether an access token is taken. One that expired before it was revoked is REVOKED. */
export type AccessTokenState = "VALID" | "EXPIRED" | "REVOKED";

/** What a token's state follows from. The store's AccessToken is one. */
export interface AccessTokenFacts {
  readonly id: string;
  readonly name: string;
  readonly role: string;
  readonly isExpired: boolean;
  /** Null for a token that is not revoked. */
  readonly revocation: object | null;
}

/** Why a token is not revoked. */
export type RevocationRefusal = Refusal<"ROLE_TOO_LOW" | "ACCESS_TOKEN_ALREADY_REVOKED">;

/** Who wants to revoke a token. */
export interface Revoker {
  /** The id of the access token that the caller came with; null for a caller without one. */
  readonly tokenId: string | null;
  /** The id of the session of the console that the caller came with; null for a caller without one. */
  readonly sessionId: string | null;
  readonly role: string;
}

/** Whether a token is taken. */
export function accessTokenState(token: AccessTokenFacts): AccessTokenState {
  if (token.revocation !== null) return "REVOKED";
  return token.isExpired ? "EXPIRED" : "VALID";
}

/**
 * Why a caller may not revoke any token but its own; null when it may. It is asked before the token is
 * looked for.
 */
export function strangersTokenRefusal(id: string, by: Revoker): RevocationRefusal | null {
  if (by.role === "admin" || isOwn(id, by)) return null;
  return {
    reason: "ROLE_TOO_LOW",
    message: `revoking access token ${id} takes the role admin, not ${by.role}; any token may revoke itself`,
    metadata: { required: "admin", role: by.role, token: id },
  };
}

/**
 * Decide to end a token; the effect is the revocation itself. One that has expired can be revoked, so that it is known
 * to be out of use.
 */
export function endAccessToken(
  token: AccessTokenFacts,
  by: Revoker & { readonly actor: string; readonly message: string },
): Decided<{ readonly actor: string; readonly reason: string }, RevocationRefusal["reason"]> {
  const { id } = token;
  if (token.revocation !== null) {
    const message = `access token ${id} was revoked already`;
    return refused("ACCESS_TOKEN_ALREADY_REVOKED", message, { token: id });
  }
  const revocation = { actor: by.actor, reason: by.message };
  return { ok: true, effects: [revocation], events: [accessTokenRevoked(token, by)] };
}

/** The event of a token made. Its life is in milliseconds, null for ever. */
export function accessTokenCreated(
  token: Pick<AccessTokenFacts, "id" | "name" | "role">,
  ttlMs: number | null,
  actor: string,
): NewEvent {
  const after: Json = { name: token.name, role: token.role, ttlMs };
  const what = { type: "access.token.created", subject: token.id, message: "" } as const;
  return { ...what, actor, reason: "ADMIN_CREATED", before: null, after };
}

/** The event of a token revoked: by an admin, or by its own holder. */
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
