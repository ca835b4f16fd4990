import type { OwnerQuota } from "@rollcall/domain";
import type { Clock, Logger } from "@rollcall/process";
import type { CallStore } from "@rollcall/store";

/** The objects that admin's methods use. */
export interface AdminServices {
  readonly store: CallStore;
  readonly clock: Clock;
  readonly log: Logger;
  /** How much the jobs of each submitter can use; no limits when absent. */
  readonly quota?: OwnerQuota;
  /** The issuers that people can log in with; none when absent. */
  readonly loginIssuers?: readonly LoginIssuer[];
}

/** An issuer that people can log in with, as clients see it. */
export interface LoginIssuer {
  /** The issuer's URL. */
  readonly issuer: string;
  readonly clientId: string;
  readonly audience: string;
  /** Scopes to request, separated by spaces. */
  readonly scopes: string;
}
