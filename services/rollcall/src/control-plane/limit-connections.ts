import { setFlagsFromString } from "node:v8";
import { type DescriptorPlan, planDescriptors } from "@rollcall/domain";
import type { Logger } from "@rollcall/process";
import type { ControlPlaneConfig } from "../config/control-plane-config.ts";
import type { ProcessPlan } from "./process-plan.ts";

/** Number of connections to the store in addition to the pool, for the event feed and upkeep. */
const STORE_EXTRA = 8;

/** How much the heap can grow before the next collection, in percent of its size after the previous one. */
const MOST_GROWTH = 60;

/**
 * Decide how many connections each port can accept, so that none exhausts the descriptors of another, and log it.
 *
 * @param limit See openFilesLimit().
 */
export function limitConnections(
  plan: ProcessPlan,
  config: ControlPlaneConfig,
  { limit, log }: { readonly limit: number | null; readonly log: Logger },
): DescriptorPlan {
  const shares = planDescriptors({
    limit,
    record: config["Database.PoolSize"] + STORE_EXTRA,
    api: config["Listen.MaxConnections"],
    ...(plan.services.includes("health") ? { agents: config["Health.MaxConnections"] ?? null } : {}),
  });
  const { api, agents, internal, needed, isShort } = shares;
  const fields = { open_files: limit ?? "unlimited", api, agents, internal };
  if (isShort) {
    log.warn(
      { ...fields, needed },
      "the limit of open files is too low for the configured connections; accepting fewer, raise ulimit -n",
    );
  } else log.info(fields, "connection limits");
  return shares;
}

/**
 * Collect garbage before the heap has grown by more than a limit. In Node.js' HTTP/2, the garbage of a heartbeat lives
 * until the node's next heartbeat, so only a full collection frees it. V8 runs as few full collections as it can, and
 * a process with ten thousand agents would grow to twice its size in between. See
 * docs/decisions/0023-bounded-garbage.md for the cost.
 */
export function boundGarbage(): void {
  setFlagsFromString(`--heap-growing-percent=${MOST_GROWTH}`);
}
