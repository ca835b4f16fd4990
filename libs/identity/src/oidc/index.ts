import type { Authenticator } from "../caller.ts";
import type { OidcAuthenticatorOptions } from "./oidc-authenticator.ts";
import type { OidcVerifier, OidcVerifierOptions } from "./oidc-verifier.ts";

export { mutableClaims } from "./claim-rules.ts";
export { fetchJson } from "./fetch-whole.ts";
export { issuerFetch } from "./issuer-fetch.ts";
export { isSafeUrl, issuerProblem, keysUrlProblem } from "./issuer-url.ts";
export { checkOidcConfig, type OidcIssuer, type OidcProblem, oidcIssuersOf } from "./oidc-issuers.ts";
export { OIDC_KEYS, type OidcConfig } from "./oidc-keys.ts";

/** Verify tokens of one issuer; see createOidcVerifier(). The implementation is loaded with the first token. */
export function openOidcVerifier(options: OidcVerifierOptions): OidcVerifier {
  let loading: Promise<OidcVerifier> | null = null;
  return async (text) => {
    loading ??= import("./oidc-verifier.ts").then(({ createOidcVerifier }) => createOidcVerifier(options));
    return (await loading)(text);
  };
}

/**
 * Authenticate callers by issuers' tokens; see createOidcAuthenticator(). The implementation is loaded only when an
 * issuer is configured.
 */
export async function openOidc(options: OidcAuthenticatorOptions): Promise<Authenticator | null> {
  if (options.issuers.length === 0) return null;
  const { createOidcAuthenticator } = await import("./oidc-authenticator.ts");
  return createOidcAuthenticator(options);
}
