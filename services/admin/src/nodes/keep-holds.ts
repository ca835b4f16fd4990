import type { Logger } from "@rollcall/process";
import { beginWaitingDrains, endCordons, type LeasedTask, leasedTask } from "@rollcall/store";
import type { AdminProcess } from "../admin-process.ts";

/** How long a cordon may stand beyond its time, and a drain may wait although it is its turn. */
const EVERY_MS = 1_000;

/** Lift cordons whose time has passed, and begin drains whose turn it is: in one admin of the cluster. */
export function keepHolds({ store, clock, log, instance }: AdminProcess): LeasedTask {
  return leasedTask({
    ...{ store: store.reserved, clock, log },
    claim: { name: "holds", instance, service: "admin", address: "" },
    work: async (signal, succeeded) => {
      while (!signal.aborted) {
        await look(store.reserved, log);
        succeeded();
        await clock.sleep(EVERY_MS, signal).catch(() => {});
      }
    },
  });
}

/** One look. What it writes needs no fence: two that look at once write nothing twice. */
async function look(store: AdminProcess["store"]["reserved"], log: Logger): Promise<void> {
  const lifted = await endCordons(store);
  if (lifted > 0) log.info({ nodes: lifted }, "cordons lifted whose time has passed");
  const begun = await beginWaitingDrains(store);
  if (begun > 0) log.info({ nodes: begun }, "drains begun that waited for others");
}
