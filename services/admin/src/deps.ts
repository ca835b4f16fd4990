import type { Clock, Logger } from "@rollcall/runtime";
import type { Store } from "@rollcall/store";

/** What admin is made of. */
export interface AdminDeps {
  readonly store: Store;
  readonly clock: Clock;
  readonly log: Logger;
}
