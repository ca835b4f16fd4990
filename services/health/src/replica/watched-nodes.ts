import type { LiveNode } from "./live-node.ts";

/** Receives changes to some nodes. Called for each frame, so it must only record the change. */
export interface NodeWatcher {
  /** Called when a frame of the node was received, or its state changed. */
  touched(node: LiveNode): void;
  /** Called when this replica no longer holds the node. */
  released(nodeId: string): void;
}

/** Maximum number of a replica's nodes that send their usage more often at the same time. */
export const MOST_PACED = 200;

/**
 * The watched nodes of a replica. They send their usage more often. While no node is watched, a heartbeat costs
 * only one more comparison.
 */
export class WatchedNodes {
  readonly #watchers = new Map<string, Set<NodeWatcher>>();
  readonly #paced = new Set<string>();
  readonly #find: (nodeId: string) => LiveNode | undefined;

  constructor(find: (nodeId: string) => LiveNode | undefined) {
    this.#find = find;
  }

  /** Number of watched nodes. */
  get size(): number {
    return this.#watchers.size;
  }

  watch(nodeId: string, watcher: NodeWatcher): void {
    const watchers = this.#watchers.get(nodeId);
    if (watchers !== undefined) {
      watchers.add(watcher);
      return;
    }
    this.#watchers.set(nodeId, new Set([watcher]));
    this.#pace(nodeId);
  }

  unwatch(nodeId: string, watcher: NodeWatcher): void {
    const watchers = this.#watchers.get(nodeId);
    if (watchers === undefined || !watchers.delete(watcher) || watchers.size > 0) return;
    this.#watchers.delete(nodeId);
    if (!this.#paced.delete(nodeId)) return;
    const node = this.#find(nodeId);
    if (node?.intervals) node.stream?.sendPace(node.intervals.heartbeatMs);
    this.#paceAnother();
  }

  /** Notify the node's watchers. */
  touched(node: LiveNode): void {
    const watchers = this.#watchers.size === 0 ? undefined : this.#watchers.get(node.id);
    if (watchers === undefined) return;
    for (const watcher of watchers) watcher.touched(node);
  }

  /**
   * Notify the watchers that this replica no longer holds a node. The watchers look for the node at other
   * replicas.
   */
  released(nodeId: string): void {
    const watchers = this.#watchers.get(nodeId);
    if (watchers === undefined) return;
    for (const watcher of watchers) watcher.released(nodeId);
  }

  /**
   * The shorter heartbeat interval of a watched node, in milliseconds; 0 if the node keeps its normal interval.
   */
  paceMs({ id, intervals }: LiveNode): number {
    if (this.#paced.size === 0 || intervals === null || !this.#paced.has(id)) return 0;
    return intervals.usageMs < intervals.heartbeatMs ? intervals.usageMs : 0;
  }

  #pace(nodeId: string): void {
    if (this.#paced.size >= MOST_PACED) return;
    this.#paced.add(nodeId);
    const node = this.#find(nodeId);
    const paceMs = node === undefined ? 0 : this.paceMs(node);
    if (paceMs > 0) node?.stream?.sendPace(paceMs);
  }

  #paceAnother(): void {
    for (const nodeId of this.#watchers.keys()) {
      if (this.#paced.has(nodeId)) continue;
      this.#pace(nodeId);
      return;
    }
  }
}
