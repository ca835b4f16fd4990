import type { HealthPolicy } from "@rollcall/domain";
import { labelsOf, type Store } from "@rollcall/store";
import { WorkLoop, type WorkLoopOptions } from "../record/work-loop.ts";
import type { HeldNode } from "../replica/held-node.ts";
import { toSettings } from "../stream/frames.ts";

const MOST_NODES_A_BATCH = 500;

/** Tells agents their labels whenever those have changed in the record. */
export class LabelPusher {
  readonly #store: Store;
  readonly #policy: HealthPolicy;
  readonly #changed = new Set<HeldNode>();

  constructor(store: Store, policy: HealthPolicy) {
    this.#store = store;
    this.#policy = policy;
  }

  /** The labels of a node have changed. */
  add(node: HeldNode): void {
    this.#changed.add(node);
  }

  /** Tell until nobody is left. After an error nothing is lost: call it again. */
  async flush(): Promise<void> {
    while (this.#changed.size > 0) {
      const batch = [...this.#changed].slice(0, MOST_NODES_A_BATCH);
      for (const node of batch) this.#changed.delete(node);
      try {
        await this.#push(batch);
      } catch (error) {
        for (const node of batch) this.#changed.add(node);
        throw error;
      }
    }
  }

  async #push(nodes: readonly HeldNode[]): Promise<void> {
    const ids = nodes.map(({ id }) => id);
    const labels = await labelsOf(this.#store.db, ids);
    for (const { id, stream, intervals } of nodes) {
      if (intervals === null) continue;
      stream?.sendSettings(toSettings(this.#policy, intervals, labels.get(id) ?? []));
    }
  }
}

/** Push labels whenever some have changed. */
export function pushLabelsTask(
  pusher: LabelPusher,
  shared: Pick<WorkLoopOptions, "clock" | "log" | "random">,
): WorkLoop {
  return new WorkLoop({ ...shared, name: "push-labels", turn: () => pusher.flush() });
}
