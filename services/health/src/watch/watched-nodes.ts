import type { HeldNode } from "../replica/held-node.ts";

/** Watches some nodes. It is called for each frame, so it must only take notes. */
export interface NodeWatcher {
  /** A frame of the node was received, or its state changed. */
  touched(node: HeldNode): void;
  /** The node is no longer held here. */
  released(nodeId: string): void;
}

/** Most nodes of one replica that send their usage more often at a time. */
export const MOST_PACED = 200;

/**
 * The watched nodes of a replica, which send their usage more often meanwhile. Without watchers this costs a heartbeat
 * one comparison.
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

  /** Notify the node's watchers. */
  touched(node: HeldNode): void {
    const watchers = this.#watchers.size === 0 ? undefined : this.#watchers.get(node.id);
    if (watchers === undefined) return;
    for (const watcher of watchers) watcher.touched(node);
  }

  /** A node is no longer held here. Its watchers look for it elsewhere. */
  released(nodeId: string): void {
    const watchers = this.#watchers.get(nodeId);
    if (watchers === undefined) return;
    for (const watcher of watchers) watcher.released(nodeId);
  }

  /** The interval between a watched node's heartbeats, in milliseconds; 0 for its usual one. */
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
