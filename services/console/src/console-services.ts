import type { Authenticator } from "@rollcall/identity";
import type { OidcIssuer } from "@rollcall/identity/oidc";
import type { Clock, Logger } from "@rollcall/process";
import type { FailedAttempts } from "@rollcall/rpc";
import type { CallStore } from "@rollcall/store";

/** The objects that the console's methods use. */
export interface ConsoleServices {
  readonly store: CallStore;
  readonly clock: Clock;
  readonly log: Logger;
  /** Identifies a caller by its access token, for sign-in and for forwarded calls. */
  readonly authenticate: Authenticator;
  /** Limits clients that guess codes and tokens; no limit when absent. */
  readonly failures?: FailedAttempts;
  /** Issuers that users can sign in with. */
  readonly issuers: readonly OidcIssuer[];
  readonly settings: SessionSettings;
}

/** How long sessions last, and where they are allowed. */
export interface SessionSettings {
  /** How long a session lasts without being used. */
  readonly idleMs: number;
  /** The longest lifetime of a session, even when it is in use. */
  readonly longestMs: number;
  /** Whether clear text is allowed on the network: see Listen.InsecurePlaintext. */
  readonly isNetworkTrusted: boolean;
}
