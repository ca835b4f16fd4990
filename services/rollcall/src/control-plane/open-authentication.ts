import type { Authenticator } from "@rollcall/identity";
import { mutableClaims, type OidcConfig, type OidcIssuer, oidcIssuersOf, openOidc } from "@rollcall/identity/oidc";
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
  const issuers = oidcIssuersOf(config);
  warnOfMutableClaims(issuers, log);
  const byIssuer = await openOidc({ issuers, clock, log });
  if (byIssuer === null) return { authenticate: byAccessToken, uses };
  // A chosen access token may look like an issuer's: what is of no issuer is looked for in the record.
  return {
    authenticate: async (bearer) => (await byIssuer(bearer)) ?? byAccessToken(bearer),
    uses,
  };
}

/** Whoever gets another's e-mail address or name at the issuer gets their role here. */
function warnOfMutableClaims(issuers: readonly OidcIssuer[], log: Logger): void {
  for (const one of issuers) {
    for (const claim of mutableClaims(one)) {
      const advice = "use one that the issuer never gives to anybody else, such as sub or oid, or groups for roles";
      log.warn({ issuer: one.issuer, claim, advice }, "a claim that decides who callers are can change");
    }
  }
}
