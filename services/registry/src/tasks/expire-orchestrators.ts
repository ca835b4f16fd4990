import { periodicTask, type Task } from "@rollcall/process";
import { expireOrchestrators as expire } from "@rollcall/store";
import type { RegistryProcess } from "../registry-services.ts";

const LOST_FOR_MS = 60 * 60_000;
const EVERY_MS = 60_000;

/**
 * Remove control-plane processes from the record that have been gone for an hour. Any number of registries may do so.
 */
export function expireOrchestrators({ store, clock, log }: Pick<RegistryProcess, "store" | "clock" | "log">): Task {
  return periodicTask({
    name: "expire-orchestrators",
    everyMs: EVERY_MS,
    clock,
    turn: async () => {
      for (const node of await expire(store.reserved, LOST_FOR_MS)) {
        log.info({ node }, "removed a lost orchestrator");
      }
    },
  });
}
