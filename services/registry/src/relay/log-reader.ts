import { counter, type Logger, type MetricsRegistry } from "@rollcall/runtime";
import { compactedRevision, type EventBatch, readEvents, type Store } from "@rollcall/store";

const BATCH_EVENTS = 1_000;

/** Reads the log in batches for the relay, and tells what of it was forgotten before it was read. */
export class LogReader {
  readonly #store: Store;
  readonly #log: Logger;
  readonly #lost: ReturnType<typeof lostCounter>;

  constructor(store: Store, log: Logger, metrics: MetricsRegistry) {
    this.#store = store;
    this.#log = log;
    this.#lost = lostCounter(metrics);
  }

  /** Whether a batch may be followed by more at once. */
  isFull(batch: EventBatch): boolean {
    return batch.events.length >= BATCH_EVENTS;
  }

  /**
   * The next events above a revision.
   *
   * @param isFirst nothing was ever relayed: what was forgotten by then is no loss.
   */
  async read(after: bigint, isFirst: boolean): Promise<EventBatch> {
    const batch = await readEvents(this.#store.db, { after, limit: BATCH_EVENTS });
    const first = batch.events[0]?.revision;
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
    this.#log.error(
      fields,
      "events were compacted before they were relayed, they are lost to nats",
    );
  }
}

function lostCounter(metrics: MetricsRegistry) {
  return counter(metrics, {
    name: "rollcall_events_relay_lost_total",
    help: "Revisions of the log that were compacted before they were relayed to NATS.",
  });
}
