import type { Clock, Logger } from "@rollcall/process";
import { IssuerKeys, type IssuerKeysOptions } from "./issuer-keys.ts";
import { issuerIn, type TokenVerdict, verifyToken } from "./verify-token.ts";

/** What tokens of one issuer are checked with. */
export interface OidcVerifierOptions {
  readonly issuer: IssuerKeysOptions["issuer"] & { readonly audience: string };
  readonly clock: Pick<Clock, "nowMs" | "wallMs">;
  readonly log: Logger;
}

/** Check a text that may be a token. Rejects with ISSUER_UNAVAILABLE when it cannot be known. */
export type OidcVerifier = (text: string) => Promise<TokenVerdict>;

/** Check tokens of one issuer that are no callers' tokens. Nothing is fetched before the first comes. */
export function createOidcVerifier({ issuer, clock, log }: OidcVerifierOptions): OidcVerifier {
  const keys = new IssuerKeys({ issuer, clock, log });
  return async (text) => {
    // A foreign token makes no look at the keys.
    if (issuerIn(text) !== issuer.issuer) return { kind: "unsigned" };
    return verifyToken(text, { ...issuer, keys }, clock.wallMs());
  };
}
