import type { HeldNode, NodeStream } from "./held-node.ts";

/** The nodes of a replica by id, and how many of them have a stream. */
export class HeldNodes {
  readonly #nodes = new Map<string, HeldNode>();
  readonly #onStreamGone: (node: HeldNode) => void;
  #sessions = 0;

  /** @param onStreamGone called when a node loses its stream, or is about to get another. */
  constructor(onStreamGone: (node: HeldNode) => void = () => {}) {
    this.#onStreamGone = onStreamGone;
  }

  /** How many nodes there are, with and without a stream. */
  get size(): number {
    return this.#nodes.size;
  }

  /** How many nodes have an open stream. */
  get sessions(): number {
    return this.#sessions;
  }

  /** How many nodes with a stream are silent beyond half of their threshold, at an observed time. Looks at each. */
  countSilent(observedMs: number): number {
    let silent = 0;
    for (const { stream, timing } of this.#nodes.values()) {
      const silentMs = observedMs - timing.lastReceivedMs;
      if (stream !== null && silentMs > timing.thresholds.unhealthyAfterMs / 2) silent += 1;
    }
    return silent;
  }

  find(nodeId: string): HeldNode | undefined {
    return this.#nodes.get(nodeId);
  }

  all(): IterableIterator<HeldNode> {
    return this.#nodes.values();
  }

  add(node: HeldNode): void {
    this.#nodes.set(node.id, node);
  }

  /** Forget a node. Returns the stream that it had. */
  remove(node: HeldNode): NodeStream | null {
    this.#nodes.delete(node.id);
    return this.takeStream(node);
  }

  /** Set a node's stream. Returns the one before. */
  setStream(node: HeldNode, stream: NodeStream): NodeStream | null {
    const before = this.takeStream(node);
    node.stream = stream;
    this.#sessions += 1;
    return before;
  }

  /** Take a node's stream away, and return it. */
  takeStream(node: HeldNode): NodeStream | null {
    const { stream } = node;
    if (stream === null) return null;
    this.#sessions -= 1;
    node.stream = null;
    this.#onStreamGone(node);
    return stream;
  }
}
