import { setFlagsFromString } from "node:v8";
import { type DescriptorPlan, planDescriptors } from "@rollcall/domain";
import type { Logger } from "@rollcall/process";
import type { ControlPlaneConfig } from "../config/control-plane-config.ts";
import type { ProcessPlan } from "./process-plan.ts";

/** The feed of events, and what upkeep opens for itself. */
const RECORD_EXTRA = 8;

/** In per cent of what the collection before has left. */
const MOST_GROWTH = 60;

/**
 * Decide how many connections each port of a process may take, so that none takes the descriptors of another, and say
 * so in the log.
 *
 * @param limit see openFilesLimit().
 */
export function limitConnections(
  plan: ProcessPlan,
  config: ControlPlaneConfig,
  { limit, log }: { readonly limit: number | null; readonly log: Logger },
): DescriptorPlan {
  const shares = planDescriptors({
    limit,
    record: config["Database.PoolSize"] + RECORD_EXTRA,
    api: config["Listen.MaxConnections"],
    ...(plan.services.includes("health") ? { agents: config["Health.MaxConnections"] ?? null } : {}),
  });
  const { api, agents, internal, needed, isShort } = shares;
  const fields = { open_files: limit ?? "unlimited", api, agents, internal };
  if (isShort) {
    log.warn(
      { ...fields, needed },
      "the limit of open files is too low for the connections that are configured, fewer are taken; raise ulimit -n",
    );
  } else log.info(fields, "connections are limited");
  return shares;
}

/**
 * Collect garbage before the heap has grown by more than so much. What a heartbeat leaves behind in Node's HTTP/2 lives
 * until the node's next one, and so is found by a full collection only; of those V8 makes as few as it can, and a
 * process that holds ten thousand agents would grow to twice its size in between. See
 * docs/decisions/0023-bounded-garbage.md for what it costs.
 */
export function boundGarbage(): void {
  setFlagsFromString(`--heap-growing-percent=${MOST_GROWTH}`);
}
