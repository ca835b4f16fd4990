import type { Authenticator } from "@rollcall/identity";
import { type OidcConfig, oidcIssuersOf, openOidc } from "@rollcall/identity/oidc";
import type { Clock, Logger } from "@rollcall/process";
import { AccessTokenUses, type CallStore, createAuthenticator } from "@rollcall/store";

/** What callers are recognised with. */
export interface AuthenticationOptions {
  readonly store: CallStore;
  readonly config: OidcConfig;
  readonly clock: Clock;
  readonly log: Logger;
}

/** How a process recognises its callers. */
export interface Authentication {
  readonly authenticate: Authenticator;
  /** Writes when access tokens were last used; for a supervisor to run. */
  readonly uses: AccessTokenUses;
}

/** Recognise callers by tokens of the configured issuers, and by the access tokens of the record. */
export async function openAuthentication(options: AuthenticationOptions): Promise<Authentication> {
  const { store, config, clock, log } = options;
  const uses = new AccessTokenUses({ store, clock, log });
  const onUse = (id: string) => uses.note(id);
  const byAccessToken = createAuthenticator({ store, clock, onUse });
  const byIssuer = await openOidc({ issuers: oidcIssuersOf(config), clock, log });
  if (byIssuer === null) return { authenticate: byAccessToken, uses };
  // A chosen access token may look like an issuer's: what is of no issuer is looked for in the record.
  return {
    authenticate: async (bearer) => (await byIssuer(bearer)) ?? byAccessToken(bearer),
    uses,
  };
}
