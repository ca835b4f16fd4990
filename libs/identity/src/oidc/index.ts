import type { Authenticator } from "../caller.ts";
import type { OidcAuthenticatorOptions } from "./oidc-authenticator.ts";

export type { OidcAuthenticatorOptions } from "./oidc-authenticator.ts";
export {
  checkOidcConfig,
  type OidcIssuer,
  type OidcProblem,
  oidcIssuersOf,
} from "./oidc-issuers.ts";
export { OIDC_KEYS, type OidcConfig } from "./oidc-keys.ts";

/**
 * Find callers by tokens of issuers; see createOidcAuthenticator(). What reads them is loaded only when there is an
 * issuer.
 */
export async function openOidc(options: OidcAuthenticatorOptions): Promise<Authenticator | null> {
  if (options.issuers.length === 0) return null;
  const { createOidcAuthenticator } = await import("./oidc-authenticator.ts");
  return createOidcAuthenticator(options);
}
