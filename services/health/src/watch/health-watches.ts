import type { NodeHealth } from "@rollcall/api/rollcall/health/v1/health_query_pb";
import { refuse } from "@rollcall/errors";
import type { StoredEvent } from "@rollcall/store";
import { MOST_WITH_SAMPLES } from "../query/most-nodes.ts";
import { HealthWatch, type HealthWatchesOptions, type WatchedSelection } from "./health-watch.ts";
import type { Mail } from "./mailbox.ts";

/** Most watches of one replica; each may have 200 nodes. */
export const MOST_WATCHES = 100;
const RETRY_AFTER_MS = 5_000;
/** The longest silence of a watch: an empty message shows that it is alive. */
const BOOKMARK_MS = 15_000;

/** All watches of this process. */
export class HealthWatches {
  readonly #options: HealthWatchesOptions;
  readonly #watches = new Set<HealthWatch>();

  constructor(options: HealthWatchesOptions) {
    this.#options = options;
  }

  /** How many there are. */
  get size(): number {
    return this.#watches.size;
  }

  /** Follow the log: owners or marks may have changed. */
  observe(events: readonly StoredEvent[]): void {
    if (this.#watches.size === 0) return;
    for (const { subject } of events) for (const watch of this.#watches) watch.doubt(subject);
  }

  /** Watch nodes until the signal aborts, which is thrown, or until the reader leaves. Throws OVERLOADED. */
  async *watch(selection: WatchedSelection): AsyncGenerator<Mail<NodeHealth>, never> {
    if (this.#watches.size >= MOST_WATCHES) {
      const message = `${MOST_WATCHES} watches are open at this replica already; try again, here or at another one`;
      throw refuse("OVERLOADED", message, { retryAfterMs: RETRY_AFTER_MS });
    }
    const { clock } = this.#options;
    const { signal } = selection;
    const watch = new HealthWatch(this.#options, selection);
    this.#watches.add(watch);
    const following = watch.follow();
    // It ends by failing; the reader gets the error below.
    following.catch(() => {});
    try {
      for (;;) {
        await watch.box.rest(clock, BOOKMARK_MS, signal);
        if (watch.failure !== null) throw watch.failure;
        yield watch.box.take(MOST_WITH_SAMPLES);
      }
    } finally {
      this.#watches.delete(watch);
      watch.end();
      await following.catch(() => {});
    }
  }
}
