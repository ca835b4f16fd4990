import { counter, type Logger, type MetricsRegistry } from "@rollcall/process";
import { compactedRevision, type EventBatch, type ReservedStore, readEvents } from "@rollcall/store";

const BATCH_EVENTS = 1_000;

/** What to read. */
export interface LogReading {
  /** Only what lies above this revision. */
  readonly after: bigint;
  /** The history of the log that is meant. */
  readonly logId: string;
  /** Nothing was ever relayed: what was forgotten by then is no loss. */
  readonly isFirst: boolean;
}

/** Reads the log in batches for the relay, and reports which part of it was forgotten before it was read. */
export class LogReader {
  readonly #store: ReservedStore;
  readonly #log: Logger;
  readonly #lost: ReturnType<typeof lostCounter>;

  constructor(store: ReservedStore, log: Logger, metrics: MetricsRegistry) {
    this.#store = store;
    this.#log = log;
    this.#lost = lostCounter(metrics);
  }

  /** Whether a batch may be followed by more at once. */
  isFull(batch: EventBatch): boolean {
    return batch.events.length >= BATCH_EVENTS;
  }

  /** The next events above a revision; null when the database holds another history of the log by now. */
  async read({ after, logId, isFirst }: LogReading): Promise<EventBatch | null> {
    const batch = await readEvents(this.#store.db, { after, limit: BATCH_EVENTS });
    const first = batch.events[0]?.revision;
    // Asked after the read: whatever database that was of, it was this one or an earlier one.
    if (first !== undefined && (await this.#store.refreshLogId()) !== logId) return null;
    // Without a gap nothing is missing. Asked after the read: what was deleted before it is known by now.
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
    this.#log.error(fields, "events were compacted before they were relayed, they are lost to nats");
  }
}

function lostCounter(metrics: MetricsRegistry) {
  return counter(metrics, {
    name: "rollcall_events_relay_lost_total",
    help: "Revisions of the log that were compacted before they were relayed to NATS.",
  });
}
