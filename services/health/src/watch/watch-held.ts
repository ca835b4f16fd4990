import type { NodeHealth } from "@rollcall/api/rollcall/health/v1/health_query_pb";
import type { Clock } from "@rollcall/process";
import { heldToProto } from "../convert.ts";
import { MOST_WITH_SAMPLES } from "../query/held-page.ts";
import type { HeldNode } from "../replica/held-node.ts";
import type { HeldView } from "../replica/held-view.ts";
import { Mailbox } from "./mailbox.ts";
import type { NodeWatcher } from "./watched-nodes.ts";

/** News of nodes that one replica holds. */
export interface HeldNews {
  readonly nodes: readonly NodeHealth[];
  /** Not held by it, or no longer. */
  readonly releasedIds: readonly string[];
}

export interface WatchHeldOptions {
  readonly replica: HeldView;
  readonly clock: Clock;
  readonly nodeIds: readonly string[];
  /** Whether each node's first answer carries its samples. */
  readonly includeSamples: boolean;
  readonly signal: AbortSignal;
}

/** The longest silence of a watch: an empty message shows that it is alive. */
const BOOKMARK_MS = 5_000;

/**
 * Yield the changes of nodes that this replica holds. Ends by throwing the signal's reason, or when its reader returns.
 */
export async function* watchHeld(options: WatchHeldOptions): AsyncGenerator<HeldNews, never> {
  const { replica, clock, nodeIds, includeSamples, signal } = options;
  const box = new Mailbox<HeldNode>();
  const watcher: NodeWatcher = {
    touched: (node) => box.put(node.id, node),
    released: (nodeId) => box.drop(nodeId),
  };
  const told = new Set<string>();
  const toProto = (node: HeldNode): NodeHealth => {
    const withSamples = includeSamples && !told.has(node.id);
    told.add(node.id);
    const { health } = node;
    return heldToProto(node, { health, replicaId: replica.instance, withSamples, clock });
  };
  try {
    for (const nodeId of nodeIds) {
      const node = replica.nodes.find(nodeId);
      if (node === undefined) {
        box.drop(nodeId);
      } else {
        replica.watched.watch(nodeId, watcher);
        box.put(nodeId, node);
      }
    }
    for (;;) {
      signal.throwIfAborted();
      const { items, dropped } = box.take(MOST_WITH_SAMPLES);
      yield { nodes: items.map(toProto), releasedIds: dropped };
      await box.rest(clock, BOOKMARK_MS, signal);
    }
  } finally {
    for (const nodeId of nodeIds) replica.watched.unwatch(nodeId, watcher);
  }
}
