import type { BlockedSubject, EventSelection, EventType } from "@rollcall/domain";
import { selectsEvent } from "@rollcall/domain";
import type { Limiter } from "@rollcall/rpc";
import { type EventRow, type ReservedStore, readEvents, subjectLabels } from "@rollcall/store";

/** Events that were read from the log. */
export interface DeliveryBatch {
  /** The selected events, in order. */
  readonly events: readonly EventRow[];
  /** All selected events up to this revision have been read. */
  readonly through: bigint;
  /** Whether more events may be available now. */
  readonly isFull: boolean;
}

const BATCH_EVENTS = 64;
/**
 * Maximum number of revisions that one read covers. This limit takes effect for webhooks that select few events.
 */
const MOST_REVISIONS = 10_000n;

interface Range {
  readonly after: bigint;
  readonly upTo?: bigint;
  readonly subject?: string;
}

/** Reads one webhook's events from one history of the log. */
export class DeliveryLog {
  readonly #store: ReservedStore;
  readonly #selection: EventSelection;
  readonly #logId: string;
  readonly #reads: Limiter;

  /** @param reads Limits the concurrent reads of all webhooks. */
  constructor(store: ReservedStore, selection: EventSelection, logId: string, reads: Limiter) {
    this.#store = store;
    this.#selection = selection;
    this.#logId = logId;
    this.#reads = reads;
  }

  /** Read the next events after a revision; null when the database now has another history of the log. */
  async next(after: bigint): Promise<DeliveryBatch | null> {
    const upTo = after + MOST_REVISIONS;
    const batch = await this.#read({ after, upTo }, null);
    return batch === null ? null : { ...batch, isFull: batch.isFull || batch.through === upTo };
  }

  /**
   * Read the events of a blocked subject, up to a revision. The event whose delivery failed is always included,
   * even if its node's labels have changed since.
   */
  of({ subject, fromRevision, failures }: BlockedSubject, upTo: bigint): Promise<DeliveryBatch | null> {
    return this.#read({ after: fromRevision - 1n, upTo, subject }, failures > 0 ? fromRevision : null);
  }

  async #read(range: Range, wanted: bigint | null): Promise<DeliveryBatch | null> {
    // Use a signal that never aborts, because statements have their own time limit, so every waiter is eventually
    // admitted.
    const leave = await this.#reads.enter(new AbortController().signal);
    try {
      return await this.#readNow(range, wanted);
    } finally {
      leave();
    }
  }

  async #readNow(range: Range, wanted: bigint | null): Promise<DeliveryBatch | null> {
    const { types, excludeTypes } = this.#selection;
    const batch = await readEvents(this.#store.db, {
      ...{ ...range, limit: BATCH_EVENTS },
      ...(types.length === 0 ? {} : { types: types as readonly EventType[] }),
      ...(excludeTypes.length === 0 ? {} : { excludeTypes: excludeTypes as readonly EventType[] }),
    });
    // Check the history after the read, because the database may have been replaced before or during the read.
    if ((await this.#store.refreshLogId()) !== this.#logId) return null;
    const { events, through } = batch;
    return { events: await this.#select(events, wanted), through, isFull: events.length >= BATCH_EVENTS };
  }

  async #select(events: readonly EventRow[], wanted: bigint | null): Promise<readonly EventRow[]> {
    if (this.#selection.selector.length === 0) return events;
    const ids = [...new Set(events.filter(({ type }) => type.startsWith("node.")).map(({ subject }) => subject))];
    const labels = await subjectLabels(this.#store.db, ids);
    return events.filter((event) => {
      return event.revision === wanted || selectsEvent(this.#selection, event, labels.get(event.subject) ?? null);
    });
  }
}
