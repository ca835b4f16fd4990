import type { Authenticator } from "../caller.ts";
import type { OidcAuthenticatorOptions } from "./oidc-authenticator.ts";
import type { OidcVerifier, OidcVerifierOptions } from "./oidc-verifier.ts";

export { mutableClaims } from "./claim-rules.ts";
export { fetchJson, fetchWhole } from "./fetch-whole.ts";
export { isSafeUrl, issuerProblem, keysUrlProblem } from "./issuer-url.ts";
export { checkOidcConfig, type OidcIssuer, type OidcProblem, oidcIssuersOf } from "./oidc-issuers.ts";
export { OIDC_KEYS, type OidcConfig } from "./oidc-keys.ts";

/** Check tokens of one issuer; what reads them is loaded with the first. See createOidcVerifier(). */
export function openOidcVerifier(options: OidcVerifierOptions): OidcVerifier {
  let loading: Promise<OidcVerifier> | null = null;
  return async (text) => {
    loading ??= import("./oidc-verifier.ts").then(({ createOidcVerifier }) => createOidcVerifier(options));
    return (await loading)(text);
  };
}

/**
 * Find callers by tokens of issuers; see createOidcAuthenticator(). What reads them is loaded only when there is an
 * issuer.
 */
export async function openOidc(options: OidcAuthenticatorOptions): Promise<Authenticator | null> {
  if (options.issuers.length === 0) return null;
  const { createOidcAuthenticator } = await import("./oidc-authenticator.ts");
  return createOidcAuthenticator(options);
}
