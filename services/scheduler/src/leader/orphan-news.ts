import { executionsOrphanedEvent, type NewEvent } from "@rollcall/domain";

/** An execution that a node runs but the store does not know. */
export interface FoundOrphan {
  readonly job: string;
  readonly nodeId: string;
}

/** Maximum number of names in one event. */
const MOST_NAMES = 20;
/** How long new orphans can remain unpublished. */
const WINDOW_MS = 60_000;

/**
 * Batches orphans into events. The first orphans are published immediately, the next when the total has
 * doubled, and the rest after a minute. If nodes report thousands within seconds, only a handful of events
 * result.
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

  /** Add orphans. Returns the event to write, or nothing if it can wait. */
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
