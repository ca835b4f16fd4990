import { counter, type Logger, type MetricsRegistry } from "@rollcall/process";
import { beginWaitingDrains, endCordons, type LeasedTask, leasedTask } from "@rollcall/store";
import type { AdminProcess } from "../admin-process.ts";

/**
 * Time between two scans, in milliseconds. Cordons are lifted, and queued drains are started, at most this late.
 */
const EVERY_MS = 1_000;

/** Lift expired cordons, and start the next queued drains. Runs in one admin process of the cluster. */
export function keepHolds({ store, clock, log, instance, metrics }: Omit<AdminProcess, "config" | "feed">): LeasedTask {
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

/** Scan once. The writes need no fencing, because two concurrent scans write nothing twice. */
async function look(store: AdminProcess["store"]["reserved"], counted: HoldMetrics, log: Logger): Promise<void> {
  const lifted = await endCordons(store);
  counted.lifted(lifted);
  if (lifted > 0) log.info({ nodes: lifted }, "expired cordons lifted");
  const begun = await beginWaitingDrains(store);
  counted.begun(begun);
  if (begun > 0) log.info({ nodes: begun }, "queued drains started");
}

interface HoldMetrics {
  lifted(nodes: number): void;
  begun(nodes: number): void;
}

function createHoldMetrics(registry: MetricsRegistry): HoldMetrics {
  const lifted = counter(registry, {
    name: "rollcall_cordons_lifted_total",
    help: "Expired cordons that were lifted.",
  });
  const begun = counter(registry, {
    name: "rollcall_drains_begun_total",
    help: "Queued drains that were started.",
  });
  return { lifted: (nodes) => lifted.inc(nodes), begun: (nodes) => begun.inc(nodes) };
}
