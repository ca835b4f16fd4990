import type { NodeHealth } from "@rollcall/api/rollcall/health/v1/health_query_pb";
import { EVENT_TYPES, type EventInterest } from "@rollcall/domain";
import { refuse } from "@rollcall/errors";
import type { EventFeed, Following, StoredEvent } from "@rollcall/store";
import { MOST_WITH_SAMPLES } from "../query/held-page.ts";
import { HealthWatch, type HealthWatchesOptions, ROUTE_PAUSE_MS, type WatchedSelection } from "./health-watch.ts";
import type { Mail } from "./mailbox.ts";

/** Most watches of one replica; each may have 200 nodes. */
export const MOST_WATCHES = 100;
const RETRY_AFTER_MS = 5_000;
/** The longest silence of a watch: an empty message shows that it is alive. */
const BOOKMARK_MS = 15_000;

/** Who holds a node, and its mark, may change by any event about a node. */
const ABOUT_NODES: EventInterest = {
  types: new Set(EVENT_TYPES.filter((type) => type.startsWith("node."))),
  displaced: new Set(),
};

/** All watches of this process. They follow the log while there are any. */
export class HealthWatches {
  readonly #options: HealthWatchesOptions;
  readonly #feed: Pick<EventFeed, "follow">;
  readonly #watches = new Set<HealthWatch>();
  #following: Following | null = null;

  constructor(options: HealthWatchesOptions & { readonly feed: Pick<EventFeed, "follow"> }) {
    this.#options = options;
    this.#feed = options.feed;
  }

  /** How many there are. */
  get size(): number {
    return this.#watches.size;
  }

  #observe(events: readonly StoredEvent[]): void {
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
    this.#following ??= this.#feed.follow({
      name: "health_watches",
      interest: ABOUT_NODES,
      gatherMs: ROUTE_PAUSE_MS,
      deliver: (events) => this.#observe(events),
    });
    const following = watch.follow();
    // It ends by failing, which the reader is told below.
    following.catch(() => {});
    try {
      for (;;) {
        await watch.box.rest(clock, BOOKMARK_MS, signal);
        if (watch.failure !== null) throw watch.failure;
        yield watch.box.take(MOST_WITH_SAMPLES);
      }
    } finally {
      this.#watches.delete(watch);
      if (this.#watches.size === 0) this.#stopFollowing();
      watch.end();
      await following.catch(() => {});
    }
  }

  #stopFollowing(): void {
    this.#following?.leave();
    this.#following = null;
  }
}
