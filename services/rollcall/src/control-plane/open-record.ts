import { isStoreUnavailable } from "@rollcall/errors";
import type { Clock, Logger } from "@rollcall/process";
import { migrate, openStore, type Store } from "@rollcall/store";
import type { PoolSizes } from "./pool-sizes.ts";

/** How to open the record. */
export interface OpenRecordOptions {
  readonly url: string;
  readonly pools: PoolSizes;
  readonly applicationName: string;
  readonly log: Logger;
  readonly clock: Clock;
}

const PAUSE_MS = 1000;

/**
 * Bring the schema up to date and open the record. A Postgres that is not there yet is waited for, since processes of a
 * deployment start in any order; one that refuses this user, or a migration that fails, is an error at once.
 */
export async function openRecord(options: OpenRecordOptions, signal: AbortSignal): Promise<Store> {
  const { url, pools, applicationName, log, clock } = options;
  let told = "";
  for (;;) {
    signal.throwIfAborted();
    try {
      await migrate(url, log);
      return await openStore({ url, ...pools, applicationName, log });
    } catch (error) {
      if (!isStoreUnavailable(error)) throw error;
      const cause = error instanceof Error ? error.message : String(error);
      // Once for each cause: an outage of an hour is not worth an hour of lines.
      if (cause !== told) log.warn({ cause }, "the record cannot be reached, trying again");
      told = cause;
      await clock.sleep(PAUSE_MS, signal);
    }
  }
}
