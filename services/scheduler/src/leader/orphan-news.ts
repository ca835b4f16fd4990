import { executionsOrphanedEvent, type NewEvent } from "@rollcall/domain";

/** An execution that a node runs and the store does not know. */
export interface FoundOrphan {
  readonly job: string;
  readonly nodeId: string;
}

/** Names that one event has. */
const MOST_NAMES = 20;
/** What was found is told after this at the latest. */
const WINDOW_MS = 60_000;

/**
 * Sums up orphans for events: the first are told at once, the next when there are as many again, and the rest after a
 * minute. Thousands that nodes report within seconds make a handful of events.
 */
export class OrphanNews {
  readonly #actor: string;
  #told = 0;
  #toldAtMs = Number.NEGATIVE_INFINITY;
  #count = 0;
  readonly #nodes = new Set<string>();
  readonly #jobs = new Set<string>();

  constructor(actor: string) {
    this.#actor = actor;
  }

  /** Add what was found. Answers the event to write with it; none while it can wait. */
  add(found: readonly FoundOrphan[], nowMs: number): readonly NewEvent[] {
    this.#count += found.length;
    for (const { job, nodeId } of found) {
      if (this.#nodes.size < MOST_NAMES) this.#nodes.add(nodeId);
      if (this.#jobs.size < MOST_NAMES) this.#jobs.add(job);
    }
    const isOver = nowMs - this.#toldAtMs >= WINDOW_MS;
    if (this.#count === 0 || (!isOver && this.#count < this.#told)) return [];
    const event = executionsOrphanedEvent({
      ...{ count: this.#count, nodes: [...this.#nodes].sort(), jobs: [...this.#jobs].sort() },
      actor: this.#actor,
    });
    this.#told = isOver ? this.#count : this.#told + this.#count;
    this.#toldAtMs = nowMs;
    this.#count = 0;
    this.#nodes.clear();
    this.#jobs.clear();
    return [event];
  }
}
