import { decodeJwt, jwtVerify } from "jose";
import { timeProblem } from "./claim-rules.ts";
import type { Claims } from "./claims.ts";
import type { IssuerKeys } from "./issuer-keys.ts";

/** What a token must match. */
export interface ExpectedToken {
  readonly issuer: string;
  readonly audience: string;
  readonly keys: IssuerKeys;
}

/**
 * The result of verifying a token. Only the details of `unsigned` may be shown to a caller who has not presented a
 * token of the issuer.
 */
export type TokenResult =
  | { readonly kind: "valid"; readonly claims: Claims }
  | { readonly kind: "expired" }
  | { readonly kind: "not-for-here"; readonly why: string }
  | { readonly kind: "unsigned" };

/**
 * The accepted algorithms. Excludes "none" and the shared-secret algorithms, with which tokens could be forged
 * without the private key.
 */
const ALGORITHMS = [
  ...["RS256", "RS384", "RS512", "PS256", "PS384", "PS512"],
  ...["ES256", "ES384", "ES512", "EdDSA", "Ed25519"],
];
/** The allowed clock difference between issuer and server, in seconds. */
const CLOCK_TOLERANCE_S = 30;
const JWT = /^[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+$/;

/**
 * The issuer that a token names. It is not verified yet and only selects the keys. Undefined when the string is not a
 * token.
 */
export function issuerIn(text: string): string | undefined {
  if (!JWT.test(text)) return undefined;
  try {
    return decodeJwt(text).iss;
  } catch {
    // Return undefined for a string that has three parts separated by dots but is not a token.
    return undefined;
  }
}

/** Verify a token at the given wall-clock time. Rejects with ISSUER_UNAVAILABLE when the keys cannot be fetched. */
export async function verifyToken(
  text: string,
  { issuer, audience, keys }: ExpectedToken,
  wallMs: number,
): Promise<TokenResult> {
  try {
    const { payload } = await jwtVerify(text, (header) => keys.find(header), {
      issuer,
      audience,
      algorithms: ALGORITHMS,
      clockTolerance: CLOCK_TOLERANCE_S,
      currentDate: new Date(wallMs),
      requiredClaims: ["exp"],
    });
    const why = timeProblem(payload);
    return why === null ? { kind: "valid", claims: payload } : { kind: "not-for-here", why };
  } catch (error) {
    // The signature is checked before the claims, so only the holder of a token from the issuer learns about problems
    // with the claims.
    switch (codeOf(error)) {
      case "ERR_JWT_EXPIRED":
        return { kind: "expired" };
      case "ERR_JWT_CLAIM_VALIDATION_FAILED":
        return { kind: "not-for-here", why: Object(error).message };
      default:
        if (codeOf(error).startsWith("ERR_J")) return { kind: "unsigned" };
        throw error;
    }
  }
}

function codeOf(error: unknown): string {
  const { code } = Object(error) as { readonly code?: unknown };
  return typeof code === "string" ? code : "";
}
