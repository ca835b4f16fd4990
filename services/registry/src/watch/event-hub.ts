import type { EventType } from "@rollcall/domain";
import type { Clock, Logger } from "@rollcall/process";
import { Limiter } from "@rollcall/rpc";
import {
  compactedRevision,
  currentRevision,
  EventFeed,
  readEvents,
  type Store,
  type StoredEvent,
} from "@rollcall/store";
import { LogWindow, type WindowPiece } from "./log-window.ts";
import { invalidResumeToken, revisionCompacted } from "./resume-token.ts";
import { sizeOfEvent } from "./sizes.ts";
import type { Waiter } from "./waiter.ts";
import type { WatchLimits } from "./watch-limits.ts";

/** What a hub needs. */
export interface EventHubOptions {
  readonly store: Store;
  readonly clock: Clock;
  readonly log: Logger;
  readonly limits: WatchLimits;
}

interface Live {
  readonly feed: EventFeed;
  readonly window: LogWindow<StoredEvent>;
}

/** From so many watchers on, they are woken at most once in so many milliseconds. */
const CROWD = 100;
const CROWD_PAUSE_MS = 40;

/**
 * The log for all watchers of this process: one feed, one connection that listens, and a window of recent events in
 * memory. It begins with the first watcher.
 */
export class EventHub {
  readonly #options: EventHubOptions;
  readonly #waiters = new Set<Waiter>();
  readonly #reads: Limiter;
  readonly #ending = new AbortController();
  #live: Live | null = null;
  #beginning: Promise<Live> | null = null;
  #logId: string;
  #wokenAtMs = Number.NEGATIVE_INFINITY;
  #isWakeDue = false;

  constructor(options: EventHubOptions) {
    this.#options = options;
    this.#reads = new Limiter(options.limits.catchUpReads);
    this.#logId = options.store.logId();
  }

  /** Watchers at this moment. */
  get watchers(): number {
    return this.#waiters.size;
  }

  /** Everything up to here is in memory, or was; 0 before it has begun. */
  get position(): bigint {
    return this.#current()?.window.position ?? 0n;
  }

  /** The history of the log to which `position` belongs. */
  get logId(): string {
    return this.#current()?.feed.logId ?? this.#logId;
  }

  /** Begin unless it has begun. Rejects with the store's error when that cannot be reached, or the signal's reason. */
  async ready(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    this.#beginning ??= this.#begin().catch((error: unknown) => {
      // The next watcher tries again.
      this.#beginning = null;
      throw error;
    });
    const beginning = this.#beginning;
    await new Promise<void>((resolve, reject) => {
      const onAbort = () => reject(signal.reason);
      signal.addEventListener("abort", onAbort, { once: true });
      beginning.then(() => resolve(), reject).finally(() => signal.removeEventListener("abort", onAbort));
    });
  }

  /** Wake a watcher whenever the log has grown, and now and then; answers how to stop. */
  join(waiter: Waiter): () => void {
    this.#waiters.add(waiter);
    return () => {
      this.#waiters.delete(waiter);
    };
  }

  /** What lies above a revision as far as it is in memory; null when some of it has left the window. */
  readWindow(after: bigint): WindowPiece<StoredEvent> | null {
    const { store, limits } = this.#options;
    const live = this.#current();
    // The log was replaced, which the feed has not learned of yet.
    if (live === null || live.feed.logId !== store.logId()) return null;
    return live.window.readAfter(after, limits.batchEvents);
  }

  /** The next batch from the table, for a watcher that is behind the window. Throws REVISION_COMPACTED. */
  async readTable(after: bigint, filter: EventFilter, signal: AbortSignal): Promise<WindowPiece<StoredEvent>> {
    const { store, limits } = this.#options;
    const leave = await this.#reads.enter(signal);
    try {
      const { events, through } = await readEvents(store.db, {
        ...filter,
        after,
        limit: limits.batchEvents,
      });
      // Asked after the read: what was deleted before it, or under it, is known by now.
      const compacted = await compactedRevision(store.db);
      if (compacted > after) throw revisionCompacted(compacted, "compacted");
      return { items: events, through };
    } finally {
      leave();
    }
  }

  /** Check that a watch can go on after a revision of a log. Throws REVISION_COMPACTED or INVALID_RESUME_TOKEN. */
  async checkPosition(logId: string, revision: bigint): Promise<void> {
    const { store } = this.#options;
    const compacted = await compactedRevision(store.db);
    if (logId !== store.logId()) throw revisionCompacted(compacted, "other-log");
    if (revision < compacted) throw revisionCompacted(compacted, "compacted");
    const head = await currentRevision(store.db);
    if (revision > head) {
      throw invalidResumeToken(`revision ${revision} is ahead of the log, which is at ${head}`, {
        revision: `${revision}`,
        head: `${head}`,
      });
    }
  }

  /** Check that the log is still the one that a watch began with. Throws REVISION_COMPACTED. */
  async checkLog(logId: string): Promise<void> {
    const { store } = this.#options;
    if (store.logId() === logId) return;
    throw revisionCompacted(await compactedRevision(store.db), "other-log");
  }

  /** Stop. Watchers have ended before, with their streams. */
  async close(): Promise<void> {
    this.#ending.abort(new Error("the hub is closed"));
    const live = await this.#beginning?.catch(() => null);
    await live?.feed.close();
    this.#wakeAll();
  }

  async #begin(): Promise<Live> {
    const { store, clock, log, limits } = this.#options;
    const head = await currentRevision(store.db);
    const compacted = await compactedRevision(store.db);
    const recent = head - BigInt(limits.windowEvents);
    // Filled with what is recent, so that watchers that come back after a restart need not read the table.
    const floor = recent > compacted ? recent : compacted;
    const size = { items: limits.windowEvents, bytes: limits.windowBytes, sizeOf: sizeOfEvent };
    const window = new LogWindow<StoredEvent>(size, floor);
    const feed = new EventFeed({ store: store.reserved, clock, log });
    this.#logId = feed.logId;
    feed.subscribe((events) => {
      if (feed.logId !== this.#logId) {
        this.#logId = feed.logId;
        window.reset((events[0]?.revision ?? feed.position + 1n) - 1n);
      }
      window.push(events, feed.position);
      this.#wakeSoon();
    });
    this.#live = { feed, window };
    const closeFeed = () => void feed.close();
    this.#ending.signal.addEventListener("abort", closeFeed, { once: true });
    await feed.start(floor);
    void this.#tick();
    return this.#live;
  }

  /** What is live, with nothing in the window that belongs to another history of the log than the feed's. */
  #current(): Live | null {
    const live = this.#live;
    if (live !== null && live.feed.logId !== this.#logId) {
      this.#logId = live.feed.logId;
      live.window.reset(live.feed.position);
    }
    return live;
  }

  /** Wakes all watchers now and then: for bookmarks, and to see whether the log was replaced. */
  async #tick(): Promise<void> {
    const { clock, limits } = this.#options;
    const { signal } = this.#ending;
    while (!signal.aborted) {
      // It rejects only when the hub is closed.
      await clock.sleep(limits.bookmarkMs / 4, signal).catch(() => {});
      this.#wakeAll();
    }
  }

  /**
   * A message costs about the same with one event as with several. So a crowd is woken only so often: what comes
   * meanwhile goes along, and the process has time for others.
   */
  #wakeSoon(): void {
    const { clock } = this.#options;
    const waitMs = this.#waiters.size < CROWD ? 0 : this.#wokenAtMs + CROWD_PAUSE_MS - clock.nowMs();
    if (waitMs <= 0) {
      this.#wakeAll();
    } else if (!this.#isWakeDue) {
      this.#isWakeDue = true;
      // It rejects only when the hub is closed, which wakes all watchers anyway.
      clock.sleep(waitMs, this.#ending.signal).then(
        () => this.#wakeAll(),
        () => {},
      );
    }
  }

  #wakeAll(): void {
    this.#isWakeDue = false;
    this.#wokenAtMs = this.#options.clock.nowMs();
    for (const { wake } of this.#waiters) wake();
  }
}

/** Which events a watcher wants. An absent field restricts nothing. The store reads by the same fields. */
export interface EventFilter {
  readonly types?: readonly EventType[];
  readonly excludeTypes?: readonly EventType[];
  readonly subject?: string;
  readonly actor?: string;
}

/** Tells whether an event is wanted. */
export type EventPredicate = (event: Pick<StoredEvent, "type" | "subject" | "actor">) => boolean;

/** Compile a filter once for all events of a watch; null when it wants everything. */
export function compileEventFilter(filter: EventFilter): EventPredicate | null {
  if (Object.keys(filter).length === 0) return null;
  const { types, excludeTypes, subject, actor } = filter;
  const wanted = types === undefined ? null : new Set(types);
  const unwanted = new Set(excludeTypes);
  return (event) =>
    (wanted === null || wanted.has(event.type)) &&
    !unwanted.has(event.type) &&
    (subject === undefined || event.subject === subject) &&
    (actor === undefined || event.actor === actor);
}
