import { counter, type Logger, type MetricsRegistry } from "@rollcall/process";
import { compactedRevision, type EventBatch, type ReservedStore, readEvents } from "@rollcall/store";

const BATCH_EVENTS = 1_000;

/** The part of the log to read. */
export interface LogReading {
  /** Only events after this revision. */
  readonly after: bigint;
  /** The history of the log to read. */
  readonly logId: string;
  /**
   * Whether nothing has been relayed yet. If so, events that were compacted before the first relay are not reported
   * as lost.
   */
  readonly isFirst: boolean;
}

/** Reads the log in batches for the relay, and reports the part that was compacted before it was read. */
export class LogReader {
  readonly #store: ReservedStore;
  readonly #log: Logger;
  readonly #lost: ReturnType<typeof lostCounter>;

  constructor(store: ReservedStore, log: Logger, metrics: MetricsRegistry) {
    this.#store = store;
    this.#log = log;
    this.#lost = lostCounter(metrics);
  }

  /** Whether more events may be available now. */
  isFull(batch: EventBatch): boolean {
    return batch.events.length >= BATCH_EVENTS;
  }

  /** The next events after a revision; null when the database now has another history of the log. */
  async read({ after, logId, isFirst }: LogReading): Promise<EventBatch | null> {
    const batch = await readEvents(this.#store.db, { after, limit: BATCH_EVENTS });
    const first = batch.events[0]?.revision;
    // Check the history after the read, so that a replacement of the database before or during the read is noticed.
    if (first !== undefined && (await this.#store.refreshLogId()) !== logId) return null;
    // Without a gap, no event is missing. Otherwise, read the compacted revision after the events, so that it covers
    // everything that was compacted before they were read.
    if (first === undefined || first === after + 1n) return batch;
    const compacted = await compactedRevision(this.#store.db);
    if (compacted > after) this.#tell({ from: after + 1n, through: compacted, isFirst });
    return batch;
  }

  #tell(gap: { readonly from: bigint; readonly through: bigint; readonly isFirst: boolean }): void {
    const fields = { from: `${gap.from}`, through: `${gap.through}` };
    if (gap.isFirst) {
      this.#log.info(fields, "events were compacted before anything was relayed");
      return;
    }
    this.#lost.inc(Number(gap.through - gap.from) + 1);
    this.#log.error(fields, "events were compacted before they were relayed and are lost for nats");
  }
}

function lostCounter(metrics: MetricsRegistry) {
  return counter(metrics, {
    name: "rollcall_events_relay_lost_total",
    help: "Number of revisions that were compacted before they were relayed to NATS.",
  });
}
