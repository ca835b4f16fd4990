import type { HeldNode } from "../replica/held-node.ts";

/** Somebody who wants to know what becomes of some nodes. It is called for each frame, so it only takes notes. */
export interface NodeWatcher {
  /** Something was received of the node, or its state has changed. */
  touched(node: HeldNode): void;
  /** The node is not held here any more. */
  released(nodeId: string): void;
}

/** Nodes of one replica that are asked for their usage more often at a time. */
export const MOST_PACED = 200;

/**
 * Which of a replica's nodes somebody watches. These are asked for their usage more often, as long as that lasts. Where
 * nobody watches, a heartbeat pays one comparison for it.
 */
export class WatchedNodes {
  readonly #watchers = new Map<string, Set<NodeWatcher>>();
  readonly #paced = new Set<string>();
  readonly #find: (nodeId: string) => HeldNode | undefined;

  constructor(find: (nodeId: string) => HeldNode | undefined) {
    this.#find = find;
  }

  /** How many nodes are watched. */
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

  /** Something is new about a node. */
  touched(node: HeldNode): void {
    const watchers = this.#watchers.size === 0 ? undefined : this.#watchers.get(node.id);
    if (watchers === undefined) return;
    for (const watcher of watchers) watcher.touched(node);
  }

  /** A node is held here no more. Its watchers ask for it elsewhere. */
  released(nodeId: string): void {
    const watchers = this.#watchers.get(nodeId);
    if (watchers === undefined) return;
    for (const watcher of watchers) watcher.released(nodeId);
  }

  /** The interval at which the node is to beat while it is watched, in milliseconds; 0 for its usual one. */
  paceMs({ id, intervals }: HeldNode): number {
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
