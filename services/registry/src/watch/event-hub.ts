import type { EventType } from "@rollcall/domain";
import { Batcher, type Clock } from "@rollcall/process";
import { Limiter } from "@rollcall/rpc";
import {
  compactedRevision,
  currentRevision,
  type EventFeed,
  type EventRow,
  type Following,
  readEvents,
  type Store,
} from "@rollcall/store";
import type { Sleeper } from "./crowd.ts";
import { GATHER_MS, type LogWake, orAborted } from "./log-wake.ts";
import { LogWindow, type WindowPiece } from "./log-window.ts";
import { invalidResumeToken, revisionCompacted } from "./resume-token.ts";
import { sizeOfEvent } from "./sizes.ts";
import type { WatchLimits } from "./watch-limits.ts";

/** Dependencies of a hub. */
export interface EventHubOptions {
  readonly store: Store;
  readonly feed: EventFeed;
  readonly wake: LogWake;
  readonly clock: Clock;
  readonly limits: WatchLimits;
}

/** The first and last revision of the log. */
export interface LogEnds {
  /** Everything up to this revision may have been deleted. */
  readonly compacted: bigint;
  /** The latest revision. */
  readonly head: bigint;
}

/** The maximum number of watchers that wait for the log's ends. A process has no descriptors for more. */
const MOST_BEGINNING = 50_000;

/** How long the window is kept after the last watcher, for watchers that reconnect. */
const KEPT_MS = 60_000;

interface Live {
  readonly following: Following;
  readonly window: LogWindow<EventRow>;
}

/**
 * The event log for all watchers in this process. It keeps a window of recent events in memory, and starts with the
 * first watcher.
 */
export class EventHub {
  readonly #options: EventHubOptions;
  readonly #reads: Limiter;
  readonly #ends: Batcher<null, LogEnds>;
  readonly #ending = new AbortController();
  #watchers = 0;
  #forgetting = new AbortController();
  #live: Live | null = null;
  #beginning: Promise<void> | null = null;
  /** The history of the log that the window belongs to. */
  #logId: string;

  constructor(options: EventHubOptions) {
    this.#options = options;
    this.#reads = new Limiter(options.limits.catchUpReads);
    this.#logId = options.store.logId();
    this.#ends = new Batcher({
      run: async (watchers) => {
        const compacted = await compactedRevision(options.store.db);
        const head = await currentRevision(options.store.db);
        return watchers.map(() => ({ compacted, head }));
      },
      ...{ maxItems: MOST_BEGINNING, maxQueued: MOST_BEGINNING, maxWaitMs: 0, clock: options.clock },
    });
  }

  /** Current number of watchers. */
  get watchers(): number {
    return this.#watchers;
  }

  /**
   * Start the hub if it has not started. Rejects with the store's error when the store cannot be reached, or with the
   * signal's reason.
   */
  async ready(signal: AbortSignal): Promise<void> {
    await this.#options.wake.ready(signal);
    this.#beginning ??= this.#begin().catch((error: unknown) => {
      // Forget the failed start, so that the next watcher retries.
      this.#beginning = null;
      throw error;
    });
    await orAborted(this.#beginning, signal);
  }

  /** Wake a watcher whenever the log grows, and periodically. Returns an unsubscribe function. */
  join(sleeper: Sleeper): () => void {
    const leave = this.#options.wake.join(sleeper);
    this.#watchers += 1;
    return () => {
      leave();
      this.#watchers -= 1;
      if (this.#watchers === 0) this.#forgetSoon();
    };
  }

  /** The events after a revision, if they are in memory; null when some have left the window. */
  readWindow(after: bigint): WindowPiece<EventRow> | null {
    const { store, feed, limits } = this.#options;
    const live = this.#current();
    // Read nothing, because the log was replaced and the feed has not noticed yet.
    if (live === null || feed.logId !== store.logId()) return null;
    return live.window.readAfter(after, limits.batchEvents);
  }

  /** Read the next batch from the table, for a watcher that is behind the window. Throws REVISION_COMPACTED. */
  async readTable(after: bigint, filter: EventFilter, signal: AbortSignal): Promise<WindowPiece<EventRow>> {
    const { store, limits } = this.#options;
    const leave = await this.#reads.enter(signal);
    try {
      const { events, through } = await readEvents(store.db, {
        ...filter,
        after,
        limit: limits.batchEvents,
      });
      // Read this after the events, so that it includes revisions that were deleted before or during that read.
      const compacted = await compactedRevision(store.db);
      if (compacted > after) throw revisionCompacted(compacted, "compacted");
      return { items: events, through };
    } finally {
      leave();
    }
  }

  /**
   * The first and last revision of the log, read after this call. Concurrent callers share the next read, so that
   * thousands of watchers that reconnect at once use one connection instead of all. Rejects with the store's error, or
   * OVERLOADED.
   */
  ends(): Promise<LogEnds> {
    return this.#ends.submit(null);
  }

  /** Check that a watch can resume after a revision of a log. Throws REVISION_COMPACTED or INVALID_RESUME_TOKEN. */
  async checkPosition(logId: string, revision: bigint): Promise<void> {
    const { store } = this.#options;
    const { compacted, head } = await this.ends();
    if (logId !== store.logId()) throw revisionCompacted(compacted, "other-log");
    if (revision < compacted) throw revisionCompacted(compacted, "compacted");
    if (revision > head) {
      throw invalidResumeToken(`revision ${revision} is ahead of the log, which is at ${head}`, {
        revision: `${revision}`,
        head: `${head}`,
      });
    }
  }

  /** Check that the log is still the one that a watch started with. Throws REVISION_COMPACTED. */
  async checkLog(logId: string): Promise<void> {
    const { store } = this.#options;
    if (store.logId() === logId) return;
    throw revisionCompacted(await compactedRevision(store.db), "other-log");
  }

  /** Stop. Watchers have already ended with their streams. */
  close(): void {
    this.#ending.abort(new Error("the hub is closed"));
    this.#live?.following.leave();
  }

  /** Drop the window and stop reading events after some time without watchers. */
  #forgetSoon(): void {
    this.#forgetting.abort();
    this.#forgetting = new AbortController();
    const signal = AbortSignal.any([this.#ending.signal, this.#forgetting.signal]);
    this.#options.clock.sleep(KEPT_MS, signal).then(
      () => {
        if (this.#watchers > 0) return;
        this.#live?.following.leave();
        this.#live = null;
        this.#beginning = null;
      },
      () => {},
    );
  }

  async #begin(): Promise<void> {
    const { feed, limits } = this.#options;
    const { compacted, head } = await this.ends();
    this.#ending.signal.throwIfAborted();
    const recent = head - BigInt(limits.windowEvents);
    // Start with recent events, so that watchers that reconnect after a restart do not have to read the table.
    const floor = recent > compacted ? recent : compacted;
    const size = { items: limits.windowEvents, bytes: limits.windowBytes, sizeOf: sizeOfEvent };
    const window = new LogWindow<EventRow>(size, floor);
    this.#logId = feed.logId;
    const following = feed.follow({
      name: "event_watches",
      after: floor,
      gatherMs: GATHER_MS,
      deliver: (events, through) => {
        if (feed.logId !== this.#logId) {
          this.#logId = feed.logId;
          window.reset((events[0]?.revision ?? through + 1n) - 1n);
        }
        window.push(events, through);
      },
    });
    this.#live = { following, window };
    await following.caughtUp;
  }

  /** The live state. If the feed now follows another history of the log, the window is emptied first. */
  #current(): Live | null {
    const live = this.#live;
    if (live !== null && this.#options.feed.logId !== this.#logId) {
      this.#logId = this.#options.feed.logId;
      live.window.reset(live.following.position);
    }
    return live;
  }
}

/** Which events a watcher wants. An absent field matches everything. The store uses the same fields. */
export interface EventFilter {
  readonly types?: readonly EventType[];
  readonly excludeTypes?: readonly EventType[];
  readonly subject?: string;
  readonly actor?: string;
}

/** Whether an event matches. */
export type EventPredicate = (event: Pick<EventRow, "type" | "subject" | "actor">) => boolean;

/** Compile a filter once for all events of a watch; null when it matches everything. */
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
