import type { BlockedSubject, EventSelection, EventType } from "@rollcall/domain";
import { selectsEvent } from "@rollcall/domain";
import type { Limiter } from "@rollcall/rpc";
import { type ReservedStore, readEvents, type StoredEvent, subjectLabels } from "@rollcall/store";

/** What was read of the log. */
export interface DeliveryBatch {
  /** Those that the webhook wants, in order. */
  readonly events: readonly StoredEvent[];
  /** Everything that it wants up to here was read. */
  readonly through: bigint;
  /** Whether there may be more at once. */
  readonly isFull: boolean;
}

const BATCH_EVENTS = 64;
/** Where few events are wanted, a read looks no further than this. */
const MOST_REVISIONS = 10_000n;

interface Range {
  readonly after: bigint;
  readonly upTo?: bigint;
  readonly subject?: string;
}

/** Reads what one webhook wants of one history of the log. */
export class DeliveryLog {
  readonly #store: ReservedStore;
  readonly #selection: EventSelection;
  readonly #logId: string;
  readonly #reads: Limiter;

  /** @param reads limits reads under way, of all webhooks. */
  constructor(store: ReservedStore, selection: EventSelection, logId: string, reads: Limiter) {
    this.#store = store;
    this.#selection = selection;
    this.#logId = logId;
    this.#reads = reads;
  }

  /** The next events above a revision; null when the database holds another history of the log by now. */
  async next(after: bigint): Promise<DeliveryBatch | null> {
    const upTo = after + MOST_REVISIONS;
    const batch = await this.#read({ after, upTo }, null);
    return batch === null ? null : { ...batch, isFull: batch.isFull || batch.through === upTo };
  }

  /**
   * What waits of a blocked subject, up to a revision. The event that could not be delivered is wanted, whatever has
   * become of the labels of its node since.
   */
  of({ subject, fromRevision, failures }: BlockedSubject, upTo: bigint): Promise<DeliveryBatch | null> {
    return this.#read({ after: fromRevision - 1n, upTo, subject }, failures > 0 ? fromRevision : null);
  }

  async #read(range: Range, wanted: bigint | null): Promise<DeliveryBatch | null> {
    // Statements have a time limit of their own: who waits here gets a turn.
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
    // Asked after the read: whatever database that was of, it was this one or an earlier one.
    if ((await this.#store.refreshLogId()) !== this.#logId) return null;
    const { events, through } = batch;
    return { events: await this.#select(events, wanted), through, isFull: events.length >= BATCH_EVENTS };
  }

  async #select(events: readonly StoredEvent[], wanted: bigint | null): Promise<readonly StoredEvent[]> {
    if (this.#selection.selector.length === 0) return events;
    const ids = [...new Set(events.filter(({ type }) => type.startsWith("node.")).map(({ subject }) => subject))];
    const labels = await subjectLabels(this.#store.db, ids);
    return events.filter((event) => {
      return event.revision === wanted || selectsEvent(this.#selection, event, labels.get(event.subject) ?? null);
    });
  }
}
