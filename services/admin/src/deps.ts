import type { Clock, Logger } from "@rollcall/process";
import type { CallStore } from "@rollcall/store";
import type { LoginIssuer } from "./access/login-issuer.ts";

/** What admin is made of. */
export interface AdminDeps {
  readonly store: CallStore;
  readonly clock: Clock;
  readonly log: Logger;
  /** The issuers with which people can log in; none when absent. */
  readonly loginIssuers?: readonly LoginIssuer[];
}
