import type { Refusal } from "../refusal.ts";

/** What there may be of sessions and codes. */
export const SIGN_IN_LIMITS = {
  /** Sessions of one token or person; the one that was not used for the longest time ends for another. */
  sessions: 10,
  /** Codes of one token or person that wait to be used. */
  codes: 5,
  codeTtlMs: 60_000,
} as const;

/** A code as it is found; the store's SignInCode is one. */
export interface SignInCodeFacts {
  readonly isExpired: boolean;
  readonly isUsed: boolean;
}

/** Why a code is not taken; null for one that is. A code that was never made is null. */
export function signInCodeRefusal(
  code: SignInCodeFacts | null,
): Refusal<"SIGN_IN_CODE_INVALID" | "SIGN_IN_CODE_USED"> | null {
  const invalid = (why: "unknown" | "expired", message: string) =>
    ({ reason: "SIGN_IN_CODE_INVALID", message, metadata: { why } }) as const;
  if (code === null) return invalid("unknown", "the code to sign in with is unknown");
  // One that was used says so even later: who finds that it was not themselves has to know.
  if (code.isUsed) {
    return { reason: "SIGN_IN_CODE_USED", message: "the code to sign in with was used before", metadata: {} };
  }
  if (!code.isExpired) return null;
  return invalid("expired", "the code to sign in with has expired, by its minute or by signing out everywhere");
}

/** Why an owner of so many codes gets no other; null when it does. */
export function moreCodesRefusal(waiting: number): Refusal<"TOO_MANY_SIGN_IN_CODES"> | null {
  const { codes } = SIGN_IN_LIMITS;
  if (waiting < codes) return null;
  const message = `${codes} codes to sign in with wait to be used already: use one of them, or wait until they expire`;
  return { reason: "TOO_MANY_SIGN_IN_CODES", message, metadata: { limit: String(codes) } };
}

/**
 * Why something is not for this caller: a session makes no other session, since it would outlive itself. Null when it
 * may.
 */
export function fromSessionRefusal(session: string | null): Refusal<"SESSION_NOT_ALLOWED"> | null {
  if (session === null) return null;
  const message = "a session of the console signs no other browser in: use an access token, or sign in at the issuer";
  return { reason: "SESSION_NOT_ALLOWED", message, metadata: { session } };
}
