import type { Authenticator } from "@rollcall/identity";
import type { OidcIssuer } from "@rollcall/identity/oidc";
import type { Clock, Logger } from "@rollcall/process";
import type { FailedAttempts } from "@rollcall/rpc";
import type { CallStore } from "@rollcall/store";

/** What the console's methods work with. */
export interface ConsoleServices {
  readonly store: CallStore;
  readonly clock: Clock;
  readonly log: Logger;
  /** Whose token a text is: sessions are made for callers that any method would take. */
  readonly authenticate: Authenticator;
  /** Limits who guesses codes and tokens; not limited when absent. */
  readonly failures?: FailedAttempts;
  /** Issuers at which people may sign in. */
  readonly issuers: readonly OidcIssuer[];
  readonly settings: SessionSettings;
}

/** How sessions live. */
export interface SessionSettings {
  /** Without a use. */
  readonly idleMs: number;
  /** However they are used. */
  readonly longestMs: number;
  /** Whether the network in between encrypts by itself: see Listen.InsecurePlaintext. */
  readonly isNetworkTrusted: boolean;
}
