import type { Refusal } from "../refusal.ts";

/** Limits of console sessions and sign-in codes. */
export const SIGN_IN_LIMITS = {
  /**
   * Maximum number of sessions per token or person. A new session ends the session that has been unused for
   * longest.
   */
  sessions: 10,
  /** Maximum number of unused codes per token or person. */
  codes: 5,
  codeTtlMs: 60_000,
} as const;

/** A sign-in code found in the store. The store's SignInCode has these fields. */
export interface SignInCodeFacts {
  readonly isExpired: boolean;
  readonly isUsed: boolean;
}

/**
 * Why a code is refused; null if it is accepted.
 *
 * @param code null if no such code exists.
 */
export function signInCodeRefusal(
  code: SignInCodeFacts | null,
): Refusal<"SIGN_IN_CODE_INVALID" | "SIGN_IN_CODE_USED"> | null {
  const invalid = (why: "unknown" | "expired", message: string) =>
    ({ reason: "SIGN_IN_CODE_INVALID", message, metadata: { why } }) as const;
  if (code === null) return invalid("unknown", "the sign-in code is unknown");
  // Check for an earlier use first, and for the expiry second: people must find out that someone else used their code,
  // even after it has expired.
  if (code.isUsed) {
    return { reason: "SIGN_IN_CODE_USED", message: "the sign-in code was already used", metadata: {} };
  }
  if (!code.isExpired) return null;
  return invalid(
    "expired",
    "the sign-in code has expired; a code is valid for one minute, or until you sign out everywhere",
  );
}

/** The refusal for someone with this many unused codes who requests another; null if the request is allowed. */
export function moreCodesRefusal(waiting: number): Refusal<"TOO_MANY_SIGN_IN_CODES"> | null {
  const { codes } = SIGN_IN_LIMITS;
  if (waiting < codes) return null;
  const message = `${codes} unused sign-in codes exist already; use one of them, or wait until they expire`;
  return { reason: "TOO_MANY_SIGN_IN_CODES", message, metadata: { limit: String(codes) } };
}

/**
 * Refuse to create a console session for a caller that itself uses one, because the new session would outlive it.
 * Returns null for a caller without a session.
 */
export function fromSessionRefusal(session: string | null): Refusal<"SESSION_NOT_ALLOWED"> | null {
  if (session === null) return null;
  const message = "a console session cannot sign in another browser; use an access token, or sign in at the issuer";
  return { reason: "SESSION_NOT_ALLOWED", message, metadata: { session } };
}
