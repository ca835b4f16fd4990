import type { NodeHealth } from "@rollcall/api/rollcall/health/v1/health_query_pb";
import type { Clock } from "@rollcall/process";
import { heldToProto } from "../convert.ts";
import { MOST_WITH_SAMPLES } from "../query/live-page.ts";
import type { LiveNode } from "../replica/live-node.ts";
import type { LiveView } from "../replica/live-view.ts";
import type { NodeWatcher } from "../replica/watched-nodes.ts";
import { Mailbox } from "./mailbox.ts";

/** Changes to nodes that one replica holds. */
export interface LiveChanges {
  readonly nodes: readonly NodeHealth[];
  /** Nodes that the replica does not hold, or no longer holds. */
  readonly releasedIds: readonly string[];
}

export interface WatchLiveOptions {
  readonly replica: LiveView;
  readonly clock: Clock;
  readonly nodeIds: readonly string[];
  /** Whether the first message about each node carries its samples. */
  readonly includeSamples: boolean;
  readonly signal: AbortSignal;
}

/** Maximum time without a message. An empty message then shows that the watch is alive. */
const BOOKMARK_MS = 5_000;

/**
 * Yield the changes to nodes that this replica holds, until the reader leaves or the signal aborts. Throws the signal's
 * reason.
 */
export async function* watchHeld(options: WatchLiveOptions): AsyncGenerator<LiveChanges, never> {
  const { replica, clock, nodeIds, includeSamples, signal } = options;
  const box = new Mailbox<LiveNode>();
  const watcher: NodeWatcher = {
    touched: (node) => box.put(node.id, node),
    released: (nodeId) => box.drop(nodeId),
  };
  const told = new Set<string>();
  const toProto = (node: LiveNode): NodeHealth => {
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
