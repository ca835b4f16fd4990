import type { Clock } from "@rollcall/process";
import type { Farewell } from "../replica/farewell.ts";
import type { HeldNode, NodeStream } from "../replica/held-node.ts";
import type { HeldNodes } from "../replica/held-nodes.ts";

export interface SessionMoverOptions {
  readonly nodes: HeldNodes;
  readonly clock: Clock;
}

interface Asked {
  readonly stream: NodeStream;
  readonly untilMs: number;
}

/** An agent that has not left by then may be asked again. */
const LEAVES_WITHIN_MS = 30_000;

/** Asks agents to move, each once at a time, and knows which of them are still here. */
export class SessionMover {
  readonly #options: SessionMoverOptions;
  readonly #asked = new Map<HeldNode, Asked>();
  /** How many nodes this round has passed. Round-robin, so that the same agents are not always asked. */
  #passed = 0;

  constructor(options: SessionMoverOptions) {
    this.#options = options;
  }

  /** How many of those that were asked are still here. */
  leaving(): number {
    const nowMs = this.#options.clock.nowMs();
    for (const [node, { stream, untilMs }] of this.#asked) {
      // Moved, gone, or back on another stream of this replica.
      if (node.stream !== stream || nowMs >= untilMs) this.#asked.delete(node);
    }
    return this.#asked.size;
  }

  /** Ask every session to move, also those that were asked before: where they were sent may be out of date. */
  askAll(farewell: () => Farewell): number {
    this.#asked.clear();
    return this.ask(Number.POSITIVE_INFINITY, farewell);
  }

  /** Ask up to `count` sessions to move. Returns how many were asked; sessions by calls cannot be. */
  ask(count: number, farewell: () => Farewell): number {
    const { nodes, clock } = this.#options;
    const untilMs = clock.nowMs() + LEAVES_WITHIN_MS;
    let asked = 0;
    let looked = 0;
    for (const node of roundFrom(nodes, this.#passed)) {
      if (asked === count) break;
      looked += 1;
      const { stream } = node;
      if (stream === null || this.#asked.has(node) || !stream.askMove(farewell())) continue;
      this.#asked.set(node, { stream, untilMs });
      asked += 1;
    }
    this.#passed = (this.#passed + looked) % Math.max(1, nodes.size);
    return asked;
  }
}

/**
 * Yields each node once, and those that this round has passed last. Rounds keep a count, not an iterator: an iterator
 * over a Map keeps removed nodes in memory.
 */
function* roundFrom(nodes: HeldNodes, passed: number): Generator<HeldNode> {
  const first: HeldNode[] = [];
  for (const node of nodes.all()) {
    if (first.length < passed) first.push(node);
    else yield node;
  }
  yield* first;
}
