import type { Clock, Logger, Task } from "@rollcall/process";
import { clearDuplicates, type ReservedStore } from "@rollcall/store";

/** The quiet time is ten minutes: half a minute more does not matter. */
const LOOK_EVERY_MS = 30_000;

/** Clears DUPLICATE_IDENTITY of this replica's nodes that only one machine has used for long enough. */
export function clearDuplicatesTask(options: {
  readonly store: ReservedStore;
  readonly instance: string;
  readonly clock: Clock;
  readonly log: Logger;
}): Task {
  const { store, instance, clock, log } = options;
  return {
    name: "clear-duplicates",
    run: async (signal, succeeded) => {
      for (;;) {
        await clock.sleep(LOOK_EVERY_MS, signal);
        for (const node of await clearDuplicates(store, instance)) {
          log.info({ node }, "one machine has the node's identity to itself");
        }
        succeeded();
      }
    },
  };
}
