import { type Logger, Loop } from "@rollcall/process";
import { type ReservedStore, recordedTroubles, settleConditions, troubledNodes } from "@rollcall/store";
import { seedGpus, troublesOf } from "../replica/gpu-samples.ts";
import type { SharedLoop } from "../replica/health-store.ts";
import type { LiveNode } from "../replica/live-node.ts";
import type { Replica } from "../replica/replica.ts";

export interface ConditionKeeperOptions {
  readonly store: ReservedStore;
  readonly replica: Replica;
  readonly log: Logger;
}

const NODES_A_BATCH = 100;

/**
 * Updates flapping, GPU troubles and the resulting holds from the store and this replica's samples. Level-triggered:
 * each write is decided from the current state, so a missed call is harmless. Reads only added nodes and nodes in
 * trouble.
 */
export class ConditionKeeper {
  readonly #options: ConditionKeeperOptions;
  /** The added nodes; bounded by the number of held nodes. */
  readonly #called = new Set<LiveNode>();

  constructor(options: ConditionKeeperOptions) {
    this.#options = options;
  }

  /** Add a node whose conditions may have changed. */
  add(node: LiveNode): void {
    this.#called.add(node);
  }

  /** Update the added nodes, then all nodes in trouble. After an error, the remaining added nodes stay queued. */
  async turn(): Promise<void> {
    const { store, replica } = this.#options;
    while (this.#called.size > 0) {
      const called = [...this.#called].slice(0, NODES_A_BATCH);
      // Remove the nodes first, because one that is added during the update must be updated again.
      for (const node of called) this.#called.delete(node);
      try {
        await this.#settle(
          await recordedTroubles(
            store.db,
            called.map(({ id }) => id),
          ),
        );
      } catch (error) {
        for (const node of called) this.#called.add(node);
        throw error;
      }
    }
    let after = "";
    for (;;) {
      const page = { after, limit: NODES_A_BATCH };
      const troubled = await troubledNodes(store.db, replica.instance, page);
      await this.#settle(troubled);
      const last = troubled.at(-1);
      if (troubled.length < NODES_A_BATCH || last === undefined) return;
      after = last.nodeId;
    }
  }

  async #settle(recorded: Awaited<ReturnType<typeof troubledNodes>>): Promise<void> {
    const { store, replica, log } = this.#options;
    const views = recorded.flatMap(({ nodeId, gpuTroubles }) => {
      const node = replica.nodes.find(nodeId);
      if (node === undefined) return [];
      seedGpus(node, gpuTroubles);
      const { policy } = node.terms.resolved;
      return [{ nodeId, epoch: node.epoch, policy, gpuTroubles: troublesOf(node) }];
    });
    if (views.length === 0) return;
    const changed = await settleConditions(store, replica.instance, views);
    if (changed.length > 0) log.info({ nodes: changed }, "flapping, hardware or holds changed");
  }
}

/** Time between two updates of conditions, in milliseconds. A hold can end late by up to this time. */
const EVERY_MS = 10_000;

/** Update conditions every 10 s, and when the loop is called. */
export function keepConditionsTask(keeper: ConditionKeeper, shared: SharedLoop): Loop {
  return new Loop({ ...shared, name: "keep-conditions", everyMs: EVERY_MS, turn: () => keeper.turn() });
}
