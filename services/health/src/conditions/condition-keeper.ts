import { type Logger, Loop } from "@rollcall/process";
import { type ReservedStore, recordedTroubles, settleConditions, troubledNodes } from "@rollcall/store";
import type { SharedLoop } from "../record/health-record.ts";
import type { HeldNode } from "../replica/held-node.ts";
import type { Replica } from "../replica/replica.ts";
import { seedGpus, troublesOf } from "./gpu-samples.ts";

export interface ConditionKeeperOptions {
  readonly store: ReservedStore;
  readonly replica: Replica;
  readonly log: Logger;
}

const NODES_A_BATCH = 100;

/**
 * Settles flapping, GPU troubles and the holds that follow from the record and this replica's samples. It is
 * level-triggered: each write is decided from the present state, so a missed call is harmless. It looks only at nodes
 * in trouble.
 */
export class ConditionKeeper {
  readonly #options: ConditionKeeperOptions;
  /** Bounded by the number of nodes held. */
  readonly #called = new Set<HeldNode>();

  constructor(options: ConditionKeeperOptions) {
    this.#options = options;
  }

  /** A node's conditions may have changed. */
  add(node: HeldNode): void {
    this.#called.add(node);
  }

  /** Settle the added nodes, then all nodes in trouble. Loses nothing after an error. */
  async turn(): Promise<void> {
    const { store, replica } = this.#options;
    while (this.#called.size > 0) {
      const called = [...this.#called].slice(0, NODES_A_BATCH);
      await this.#settle(
        await recordedTroubles(
          store.db,
          called.map(({ id }) => id),
        ),
      );
      for (const node of called) this.#called.delete(node);
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

/** The end of a hold need not be exact to the second. */
const EVERY_MS = 10_000;

/** Settle conditions every 10 s, and on call. */
export function keepConditionsTask(keeper: ConditionKeeper, shared: SharedLoop): Loop {
  return new Loop({ ...shared, name: "keep-conditions", everyMs: EVERY_MS, turn: () => keeper.turn() });
}
