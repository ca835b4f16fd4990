import type { LiveNode, NodeStream } from "./live-node.ts";

/** The nodes of a replica, keyed by id, with the number of nodes that have a stream. */
export class LiveNodes {
  readonly #nodes = new Map<string, LiveNode>();
  readonly #onStreamGone: (node: LiveNode) => void;
  #sessions = 0;

  /** @param onStreamGone called when a node loses its stream or is about to get another one. */
  constructor(onStreamGone: (node: LiveNode) => void = () => {}) {
    this.#onStreamGone = onStreamGone;
  }

  /** Number of nodes, with and without a stream. */
  get size(): number {
    return this.#nodes.size;
  }

  /** Number of nodes with an open stream. */
  get sessions(): number {
    return this.#sessions;
  }

  /**
   * The number of nodes with a stream that have been silent for more than half of their threshold, at an observed
   * time. Scans all nodes.
   */
  countSilent(observedMs: number): number {
    let silent = 0;
    for (const { stream, timing } of this.#nodes.values()) {
      const silentMs = observedMs - timing.lastReceivedMs;
      if (stream !== null && silentMs > timing.thresholds.unhealthyAfterMs / 2) silent += 1;
    }
    return silent;
  }

  find(nodeId: string): LiveNode | undefined {
    return this.#nodes.get(nodeId);
  }

  all(): IterableIterator<LiveNode> {
    return this.#nodes.values();
  }

  add(node: LiveNode): void {
    this.#nodes.set(node.id, node);
  }

  /** Forget a node. Returns the stream that it had. */
  remove(node: LiveNode): NodeStream | null {
    this.#nodes.delete(node.id);
    return this.takeStream(node);
  }

  /** Set a node's stream. Returns the previous one. */
  setStream(node: LiveNode, stream: NodeStream): NodeStream | null {
    const before = this.takeStream(node);
    node.stream = stream;
    this.#sessions += 1;
    return before;
  }

  /** Remove a node's stream and return it. */
  takeStream(node: LiveNode): NodeStream | null {
    const { stream } = node;
    if (stream === null) return null;
    this.#sessions -= 1;
    node.stream = null;
    this.#onStreamGone(node);
    return stream;
  }
}
