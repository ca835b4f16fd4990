import type { Authenticator } from "@rollcall/identity";
import { mutableClaims, type OidcConfig, type OidcIssuer, oidcIssuersOf, openOidc } from "@rollcall/identity/oidc";
import type { Clock, Logger } from "@rollcall/process";
import { AccessTokenUses, type CallStore, createAuthenticator, openOwnConnections } from "@rollcall/store";
import { AUTHENTICATION_CONNECTIONS } from "./pool-sizes.ts";

/** The inputs for opening authentication. */
export interface AuthenticationOptions {
  readonly store: CallStore;
  readonly config: OidcConfig;
  readonly clock: Clock;
  readonly log: Logger;
}

/** The objects with which a process authenticates its callers. */
export interface Authentication {
  readonly authenticate: Authenticator;
  /** Records when access tokens were last used. A supervisor runs it. */
  readonly uses: AccessTokenUses;
  close(): Promise<void>;
}

/**
 * Time limit of a statement, shorter than the time that a call waits for authentication. A statement that waits
 * for a lock is canceled in time for the next statement to run.
 */
const STATEMENT_TIMEOUT_MS = 4_000;

/** Recognise callers by tokens of the configured issuers, and by the access tokens in the store. */
export async function openAuthentication(options: AuthenticationOptions): Promise<Authentication> {
  const { store, config, clock, log } = options;
  const uses = new AccessTokenUses({ store, clock, log });
  const onUse = (id: string) => uses.note(id);
  // Use separate connections, so that callers can be identified, or refused with a reason, even while calls use
  // all other connections.
  const own = openOwnConnections(
    {
      ...store.address,
      ...{ applicationName: `${store.applicationName} callers`, log, statementTimeoutMs: STATEMENT_TIMEOUT_MS },
    },
    AUTHENTICATION_CONNECTIONS,
  );
  const byAccessToken = createAuthenticator({ store: own, clock, onUse });
  const issuers = oidcIssuersOf(config);
  warnOfMutableClaims(issuers, log);
  const byIssuer = await openOidc({ issuers, clock, log });
  const close = () => own.close();
  if (byIssuer === null) return { authenticate: byAccessToken, uses, close };
  // An access token that an administrator chose can look like an issuer's token. A token that no issuer signed is
  // therefore looked up in the store.
  return {
    authenticate: async (bearer) => (await byIssuer(bearer)) ?? byAccessToken(bearer),
    uses,
    close,
  };
}

/**
 * Warn about claims that can change: anyone who gets another person's e-mail address or name at the issuer gets
 * that person's role.
 */
function warnOfMutableClaims(issuers: readonly OidcIssuer[], log: Logger): void {
  for (const one of issuers) {
    for (const claim of mutableClaims(one)) {
      const advice = "use one that the issuer never reassigns, such as sub or oid, or groups for roles";
      log.warn({ issuer: one.issuer, claim, advice }, "a claim that identifies callers can change");
    }
  }
}
