import type { NodeHealth } from "@rollcall/api/rollcall/health/v1/health_query_pb";
import { EVENT_TYPES, type EventInterest } from "@rollcall/domain";
import { refuse } from "@rollcall/errors";
import type { EventFeed, EventRow, Following } from "@rollcall/store";
import { MOST_WITH_SAMPLES } from "../query/live-page.ts";
import { HealthWatch, type HealthWatchesOptions, ROUTE_PAUSE_MS, type WatchedSelection } from "./health-watch.ts";
import type { Mail } from "./mailbox.ts";

/** Maximum number of watches of one replica; each can have 200 nodes. */
export const MOST_WATCHES = 100;
const RETRY_AFTER_MS = 5_000;
/** Maximum time without a message. An empty message then shows that the watch is alive. */
const BOOKMARK_MS = 15_000;

/** Events about nodes. Any of them can change a node's owner and its mark. */
const ABOUT_NODES: EventInterest = {
  types: new Set(EVENT_TYPES.filter((type) => type.startsWith("node."))),
  displaced: new Set(),
};

/** All watches of this process. They follow the log while there is at least one watch. */
export class HealthWatches {
  readonly #options: HealthWatchesOptions;
  readonly #feed: Pick<EventFeed, "follow">;
  readonly #watches = new Set<HealthWatch>();
  #following: Following | null = null;

  constructor(options: HealthWatchesOptions & { readonly feed: Pick<EventFeed, "follow"> }) {
    this.#options = options;
    this.#feed = options.feed;
  }

  /** Number of watches. */
  get size(): number {
    return this.#watches.size;
  }

  #observe(events: readonly EventRow[]): void {
    for (const { subject } of events) for (const watch of this.#watches) watch.doubt(subject);
  }

  /** Watch nodes until the reader leaves or the signal aborts. Throws the signal's reason, or OVERLOADED. */
  async *watch(selection: WatchedSelection): AsyncGenerator<Mail<NodeHealth>, never> {
    if (this.#watches.size >= MOST_WATCHES) {
      const message = `this replica already has ${MOST_WATCHES} watches; retry here or at another replica`;
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
    // follow() always rejects when it ends. The loop below throws its error to the reader.
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
