import type { Clock, Logger, Task } from "@rollcall/process";
import { clearDuplicates, type ReservedStore } from "@rollcall/store";
import type { Replica } from "../replica/replica.ts";

/**
 * Time between two scans. The quiet time is ten minutes, so an extra half minute does not matter.
 */
const SCAN_EVERY_MS = 30_000;

/**
 * Clears DUPLICATE_IDENTITY from this replica's nodes that only one agent has used for long enough.
 */
export function clearDuplicatesTask(options: {
  readonly store: ReservedStore;
  readonly replica: Pick<Replica, "instance" | "identityCleared">;
  readonly clock: Clock;
  readonly log: Logger;
}): Task {
  const { store, replica, clock, log } = options;
  return {
    name: "clear-duplicates",
    run: async (signal, succeeded) => {
      for (;;) {
        await clock.sleep(SCAN_EVERY_MS, signal);
        for (const node of await clearDuplicates(store, replica.instance)) {
          replica.identityCleared(node);
          log.info({ node }, "only one agent uses the node's identity");
        }
        succeeded();
      }
    },
  };
}
