import { counter, type Logger, type MetricsRegistry } from "@rollcall/process";
import { beginWaitingDrains, endCordons, type LeasedTask, leasedTask } from "@rollcall/store";
import type { AdminProcess } from "../admin-process.ts";

/** How long a cordon may stand beyond its time, and a drain may wait although it is its turn. */
const EVERY_MS = 1_000;

/** Lift cordons whose time has passed, and begin drains whose turn it is: in one admin of the cluster. */
export function keepHolds({ store, clock, log, instance, metrics }: Omit<AdminProcess, "config">): LeasedTask {
  const counted = createHoldMetrics(metrics);
  return leasedTask({
    ...{ store: store.reserved, clock, log },
    claim: { name: "holds", instance, service: "admin", address: "" },
    work: async (signal, succeeded) => {
      while (!signal.aborted) {
        await look(store.reserved, counted, log);
        succeeded();
        await clock.sleep(EVERY_MS, signal).catch(() => {});
      }
    },
  });
}

/** One look. What it writes needs no fence: two that look at once write nothing twice. */
async function look(store: AdminProcess["store"]["reserved"], counted: HoldMetrics, log: Logger): Promise<void> {
  const lifted = await endCordons(store);
  counted.lifted(lifted);
  if (lifted > 0) log.info({ nodes: lifted }, "cordons lifted whose time has passed");
  const begun = await beginWaitingDrains(store);
  counted.begun(begun);
  if (begun > 0) log.info({ nodes: begun }, "drains begun that waited for others");
}

interface HoldMetrics {
  lifted(nodes: number): void;
  begun(nodes: number): void;
}

function createHoldMetrics(registry: MetricsRegistry): HoldMetrics {
  const lifted = counter(registry, {
    name: "rollcall_cordons_lifted_total",
    help: "Cordons that were lifted since their time had passed.",
  });
  const begun = counter(registry, {
    name: "rollcall_drains_begun_total",
    help: "Drains that began since it was their turn in their selections.",
  });
  return { lifted: (nodes) => lifted.inc(nodes), begun: (nodes) => begun.inc(nodes) };
}
