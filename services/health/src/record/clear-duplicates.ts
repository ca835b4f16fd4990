import type { Clock, Logger, Task } from "@rollcall/process";
import { clearDuplicates, type ReservedStore } from "@rollcall/store";

/** The quiet time is ten minutes: nobody waits for half of one more. */
const LOOK_EVERY_MS = 30_000;

/** Clears the nodes of this replica whose identity one machine has had to itself for long enough. */
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
