import { type CollectionSettings, decideCollection } from "@rollcall/domain";
import { Loop, type Task } from "@rollcall/process";
import {
  expireOrchestrators as expire,
  findGoneNodes,
  isHealthServed,
  type Node,
  removeGoneNodes,
} from "@rollcall/store";
import type { RegistryConfig } from "../config.ts";
import type { RegistryProcess } from "../registry-process.ts";
import type { Chore } from "./upkeep.ts";

const EVERY_MS = 20_000;
const EVERY_TWENTY_SECONDS = "*/20 * * * * *";
/**
 * The longest gap between two runs that does not restart the measurement. During a longer gap, nodes may have been
 * unable to reconnect, and no run would have noticed.
 */
const LONGEST_GAP_MS = 3 * EVERY_MS;
const NODES_PER_SCAN = 200;
const LONGEST_GOODBYE_MS = 60_000;

/** Removes nodes that have been gone for longer than the configured time; see decideCollection(). */
export function collectNodes(services: Pick<RegistryProcess, "store" | "clock" | "log" | "config">): Chore {
  const { clock, log } = services;
  const store = services.store.reserved;
  const settings = settingsOf(services.config);
  const served = new ServedTime();
  return {
    name: "collect-nodes",
    schedule: EVERY_TWENTY_SECONDS,
    overdueAfterMs: EVERY_MS,
    run: async (signal) => {
      const servedForMs = served.look(clock.nowMs(), await isHealthServed(store.db));
      const decide = (node: Node, nowMs: number) => {
        const subject = { ...node, ephemeral: node.joining.ephemeral };
        return decideCollection(subject, settings, { nowMs, servedForMs });
      };
      let removed = 0;
      let after = "";
      while (!signal.aborted) {
        const ids = await findGoneNodes(store.db, {
          ephemeralForMs: settings.goodbyeAfterMs,
          othersForMs: settings.collectAfterMs,
          ...{ after, limit: NODES_PER_SCAN },
        });
        const gone = await removeGoneNodes(store, ids, decide);
        for (const node of gone) log.info({ node }, "removed a node that was gone for too long");
        removed += gone.length;
        after = ids.at(-1) ?? "";
        if (ids.length < NODES_PER_SCAN) break;
      }
      return removed;
    },
  };
}

/**
 * Measures how long nodes have been able to reconnect. The time counts from the first of consecutive runs that all
 * found a health replica. A run without a replica, or a long gap between two runs, restarts the measurement. So does a
 * new registry.
 */
class ServedTime {
  #sinceMs: number | null = null;
  #lastMs = 0;

  /** Record whether a run found a health replica. Returns for how many milliseconds nodes could reconnect. */
  look(nowMs: number, isServed: boolean): number {
    const isGap = nowMs - this.#lastMs > LONGEST_GAP_MS;
    this.#lastMs = nowMs;
    if (!isServed) this.#sinceMs = null;
    else if (this.#sinceMs === null || isGap) this.#sinceMs = nowMs;
    return this.#sinceMs === null ? 0 : nowMs - this.#sinceMs;
  }
}

function settingsOf(config: RegistryConfig): CollectionSettings {
  const ephemeralAfterMs = config["Orchestrator.NodeManager.EphemeralAfter"];
  return {
    collectAfterMs: config["Orchestrator.NodeManager.CollectAfter"] ?? null,
    ephemeralAfterMs,
    goodbyeAfterMs: Math.min(ephemeralAfterMs, LONGEST_GOODBYE_MS),
  };
}

const LOST_FOR_MS = 60 * 60_000;
const SCAN_FOR_LOST_EVERY_MS = 60_000;

/** Remove control-plane processes that have been gone for an hour. Several registries can do this concurrently. */
export function expireOrchestrators({ store, clock, log }: Pick<RegistryProcess, "store" | "clock" | "log">): Task {
  return new Loop({
    name: "expire-orchestrators",
    everyMs: SCAN_FOR_LOST_EVERY_MS,
    clock,
    turn: async () => {
      for (const node of await expire(store.reserved, LOST_FOR_MS)) {
        log.info({ node }, "removed a lost control-plane process");
      }
    },
  });
}
