import type { Clock } from "@rollcall/process";
import { IssuerKeys, type IssuerKeysOptions } from "./issuer-keys.ts";
import { issuerIn, type TokenResult, verifyToken } from "./verify-token.ts";

export interface OidcVerifierOptions extends Pick<IssuerKeysOptions, "fetch" | "log"> {
  readonly issuer: IssuerKeysOptions["issuer"] & { readonly audience: string };
  readonly clock: Pick<Clock, "nowMs" | "wallMs">;
}

/**
 * Verify a string that may be a token. Rejects with ISSUER_UNAVAILABLE when the keys cannot be fetched.
 */
export type OidcVerifier = (text: string) => Promise<TokenResult>;

/**
 * Verify tokens of one issuer for a purpose other than authenticating callers. Nothing is fetched
 * before the first token arrives.
 */
export function createOidcVerifier({ issuer, clock, ...others }: OidcVerifierOptions): OidcVerifier {
  const keys = new IssuerKeys({ issuer, clock, ...others });
  return async (text) => {
    // Do not fetch keys for a token of another issuer.
    if (issuerIn(text) !== issuer.issuer) return { kind: "unsigned" };
    return verifyToken(text, { ...issuer, keys }, clock.wallMs());
  };
}
