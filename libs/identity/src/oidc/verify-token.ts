import { decodeJwt, jwtVerify } from "jose";
import { timeProblem } from "./claim-rules.ts";
import type { Claims } from "./claims.ts";
import type { IssuerKeys } from "./issuer-keys.ts";

/** What a token must be. */
export interface ExpectedToken {
  readonly issuer: string;
  readonly audience: string;
  readonly keys: IssuerKeys;
}

/** What a token turned out to be. Only that of `unsigned` may be said to a caller without the issuer's token. */
export type TokenVerdict =
  | { readonly kind: "valid"; readonly claims: Claims }
  | { readonly kind: "expired" }
  | { readonly kind: "not-for-here"; readonly why: string }
  | { readonly kind: "unsigned" };

/** None that uses a shared secret, and not "none": with either, a public key would be enough to make tokens. */
const ALGORITHMS = [
  ...["RS256", "RS384", "RS512", "PS256", "PS384", "PS512"],
  ...["ES256", "ES384", "ES512", "EdDSA", "Ed25519"],
];
/** How much the clocks of issuer and server may differ. */
const CLOCK_TOLERANCE_S = 30;
const JWT = /^[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+$/;

/** The issuer that a token names, which only says by whose keys to check it; undefined for what is no such token. */
export function issuerIn(text: string): string | undefined {
  if (!JWT.test(text)) return undefined;
  try {
    return decodeJwt(text).iss;
  } catch {
    // Three texts with dots between that are no token.
    return undefined;
  }
}

/** Check a token at a wall time. Rejects with ISSUER_UNAVAILABLE when the keys cannot be known. */
export async function verifyToken(
  text: string,
  { issuer, audience, keys }: ExpectedToken,
  wallMs: number,
): Promise<TokenVerdict> {
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
    // The signature is checked before the claims: only the holder of a token that the issuer made may learn what is
    // wrong with them.
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
