import type { OwnerQuota } from "@rollcall/domain";
import type { Clock, Logger } from "@rollcall/process";
import type { CallStore } from "@rollcall/store";

/** What admin's methods work with. */
export interface AdminServices {
  readonly store: CallStore;
  readonly clock: Clock;
  readonly log: Logger;
  /** What the jobs of each submitter can use; no limits when absent. */
  readonly quota?: OwnerQuota;
  /** The issuers with which people can log in; none when absent. */
  readonly loginIssuers?: readonly LoginIssuer[];
}

/** An issuer with which people can log in, as clients are told. */
export interface LoginIssuer {
  /** Its URL. */
  readonly issuer: string;
  readonly clientId: string;
  readonly audience: string;
  /** Scopes to ask for, divided by blanks. */
  readonly scopes: string;
}
