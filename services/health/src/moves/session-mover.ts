import type { Clock } from "@rollcall/process";
import type { Farewell } from "../replica/farewell.ts";
import type { LiveNode, NodeStream } from "../replica/live-node.ts";
import type { LiveNodes } from "../replica/live-nodes.ts";

export interface SessionMoverOptions {
  readonly nodes: LiveNodes;
  readonly clock: Clock;
}

interface Asked {
  readonly stream: NodeStream;
  readonly untilMs: number;
}

/** Time after which an agent that has not left can be asked again. */
const LEAVES_WITHIN_MS = 30_000;

/**
 * Asks agents to move, and tracks which of them have not left yet. An agent is not asked again while an earlier
 * request is pending.
 */
export class SessionMover {
  readonly #options: SessionMoverOptions;
  readonly #asked = new Map<LiveNode, Asked>();
  /** Number of nodes that the current round has passed. Rounds ensure that different agents are asked each time. */
  #passed = 0;

  constructor(options: SessionMoverOptions) {
    this.#options = options;
  }

  /** Number of agents that were asked and have not left yet. */
  leaving(): number {
    const nowMs = this.#options.clock.nowMs();
    for (const [node, { stream, untilMs }] of this.#asked) {
      // Stop tracking an agent that has moved, is gone, has another stream to this replica, or did not leave in
      // time.
      if (node.stream !== stream || nowMs >= untilMs) this.#asked.delete(node);
    }
    return this.#asked.size;
  }

  /** Ask every session to move, including those asked before, because their target may be out of date. */
  askAll(farewell: () => Farewell): number {
    this.#asked.clear();
    return this.ask(Number.POSITIVE_INFINITY, farewell);
  }

  /** Ask up to `count` sessions to move. Returns the number asked; unary sessions cannot be asked. */
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
 * Yields each node once, starting after those that this round has passed. A round keeps a count instead of an
 * iterator, because an iterator over a Map keeps removed nodes in memory.
 */
function* roundFrom(nodes: LiveNodes, passed: number): Generator<LiveNode> {
  const first: LiveNode[] = [];
  for (const node of nodes.all()) {
    if (first.length < passed) first.push(node);
    else yield node;
  }
  yield* first;
}
