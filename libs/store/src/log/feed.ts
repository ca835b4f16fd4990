import type { EventType } from "@rollcall/domain";
import { type Clock, fullJitter, type Logger, systemClock, WakeUp } from "@rollcall/process";
import type { ReservedStore } from "../database/store.ts";
import { currentRevision, readEvents, type StoredEvent } from "./events.ts";
import { listenUntil } from "./notifications.ts";

/** What a feed needs. */
export interface EventFeedOptions {
  readonly store: ReservedStore;
  readonly log: Logger;
  /** Only these types; absent means all. */
  readonly types?: readonly EventType[];
  /** How often to look without being woken; 1000. */
  readonly pollMs?: number;
  /** Shortest time between two looks: what is committed meanwhile is read at once. Default 0. */
  readonly gatherMs?: number;
  /** Events in one delivery at most; 500. */
  readonly batchSize?: number;
  readonly clock?: Clock;
}

/** Receives events in order, each once. Must not block; what it throws is logged, and the others are called. */
export type FeedListener = (events: readonly StoredEvent[]) => void;

interface Waiter extends Deferred {
  readonly revision: bigint;
}

const CHANNEL = "rollcall_events";
const DEFAULT_POLL_MS = 1_000;
const DEFAULT_BATCH_SIZE = 500;
const BACKOFF_BASE_MS = 100;
const BACKOFF_MAX_MS = 2_000;

/**
 * The log as it grows, for all readers in this process: over one connection that is woken by notifications, and by
 * polling when those fail. It goes on from where it was whenever the server comes back.
 */
export class EventFeed {
  readonly #options: EventFeedOptions;
  readonly #clock: Clock;
  readonly #wakeUp = new WakeUp();
  readonly #ending = new AbortController();
  readonly #listeners = new Set<FeedListener>();
  readonly #waiters = new Set<Waiter>();
  #position = 0n;
  #logId: string;
  #isHistoryKnown = true;
  #loops: Promise<unknown> | null = null;

  constructor(options: EventFeedOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#logId = options.store.logId();
  }

  /** Everything up to here has been delivered. */
  get position(): bigint {
    return this.#position;
  }

  /** The history of the log to which `position` belongs. */
  get logId(): string {
    return this.#logId;
  }

  /** Receive what lies above the present position, as it is delivered; answers how to stop. */
  subscribe(listener: FeedListener): () => void {
    this.#listeners.add(listener);
    return () => {
      this.#listeners.delete(listener);
    };
  }

  /**
   * Begin after a revision; resolves when the log has been read to its end once, rejects when the feed is closed
   * before.
   */
  async start(afterRevision: bigint): Promise<void> {
    if (this.#loops !== null) throw new Error("the feed was started before");
    this.#position = afterRevision;
    const { store, log } = this.#options;
    const firstEnd = createDeferred();
    const { signal } = this.#ending;
    signal.addEventListener("abort", () => firstEnd.reject(signal.reason), { once: true });
    const listening = listenUntil(
      CHANNEL,
      {
        url: store.url,
        applicationName: `${store.applicationName} feed`,
        log,
        clock: this.#clock,
        onWake: (payload) => this.#onNotification(payload),
      },
      signal,
    );
    this.#loops = Promise.all([listening, this.#follow(firstEnd.resolve)]);
    await firstEnd.promise;
  }

  /**
   * Resolves once everything up to `revision` has been delivered; rejects when the feed is closed first or `signal`
   * aborts.
   */
  async caughtUpTo(revision: bigint, signal?: AbortSignal): Promise<void> {
    signal?.throwIfAborted();
    this.#ending.signal.throwIfAborted();
    if (this.#position >= revision) return;
    const waiter: Waiter = { revision, ...createDeferred() };
    const onAbort = () => waiter.reject(signal?.reason);
    signal?.addEventListener("abort", onAbort, { once: true });
    this.#waiters.add(waiter);
    this.#wakeUp.call();
    try {
      await waiter.promise;
    } finally {
      this.#waiters.delete(waiter);
      signal?.removeEventListener("abort", onAbort);
    }
  }

  /** Stop. No listener is called afterwards. */
  async close(): Promise<void> {
    const reason = new Error("the feed is closed");
    this.#ending.abort(reason);
    for (const waiter of this.#waiters) waiter.reject(reason);
    await this.#loops;
  }

  #onNotification(payload: string | null): void {
    if (payload === null) {
      // A new connection: notifications may have been missed, and the server may be another copy than before.
      this.#isHistoryKnown = false;
      this.#wakeUp.call();
    } else if (BigInt(payload) > this.#position) {
      this.#wakeUp.call();
    }
  }

  /** After a restore or a promotion the log may be shorter than what was delivered: what it grows from there is new. */
  async #checkHistory(): Promise<void> {
    const { store, log } = this.#options;
    // Its own memory, not the store's: another reader of this process may have learned of it before.
    const before = this.#logId;
    const after = await store.refreshLogId();
    if (after !== before) {
      const head = await currentRevision(store.db);
      log.error({ before, after, position: `${this.#position}`, head: `${head}` }, "log replaced");
      if (head < this.#position) this.#position = head;
      this.#logId = after;
    }
    this.#isHistoryKnown = true;
  }

  async #follow(onFirstEnd: () => void): Promise<void> {
    const { log, pollMs: atMostMs = DEFAULT_POLL_MS, gatherMs: atLeastMs = 0 } = this.#options;
    const { signal } = this.#ending;
    let failures = 0;
    while (!signal.aborted) {
      try {
        if (!this.#isHistoryKnown) await this.#checkHistory();
        const atEnd = await this.#readBatch();
        if (failures > 0) log.info({ failures }, "feed reads the log again");
        failures = 0;
        if (!atEnd) continue;
        onFirstEnd();
        await this.#wakeUp.rest(this.#clock, { atMostMs, atLeastMs }, signal);
      } catch (err) {
        if (signal.aborted) return;
        log.warn({ err, failures }, "feed cannot read the log");
        await this.#pause(failures);
        failures += 1;
      }
    }
  }

  async #readBatch(): Promise<boolean> {
    const { store, types, batchSize = DEFAULT_BATCH_SIZE } = this.#options;
    const batch = await readEvents(store.db, {
      after: this.#position,
      limit: batchSize,
      ...(types === undefined ? {} : { types }),
    });
    if (this.#ending.signal.aborted) return true;
    this.#position = batch.through;
    if (batch.events.length > 0) this.#deliver(batch.events);
    for (const waiter of this.#waiters) {
      if (waiter.revision <= this.#position) waiter.resolve();
    }
    return batch.events.length < batchSize;
  }

  #deliver(events: readonly StoredEvent[]): void {
    // A copy: who subscribes from within a listener wants what comes after this batch.
    for (const listener of [...this.#listeners]) {
      if (!this.#listeners.has(listener)) continue;
      try {
        listener(events);
      } catch (err) {
        this.#options.log.error({ err }, "feed listener failed");
      }
    }
  }

  async #pause(attempt: number): Promise<void> {
    const ms = fullJitter({
      attempt,
      baseMs: BACKOFF_BASE_MS,
      maxMs: BACKOFF_MAX_MS,
      random01: Math.random(),
    });
    // Only the end of the feed interrupts it, and the loop sees that itself.
    await this.#clock.sleep(ms, this.#ending.signal).catch(() => {});
  }
}

/** A promise that is settled from outside. */
interface Deferred {
  readonly promise: Promise<void>;
  readonly resolve: () => void;
  readonly reject: (reason: unknown) => void;
}

/** Create a promise that is settled from outside. A rejection that is not awaited is ignored. */
function createDeferred(): Deferred {
  let resolve: () => void = () => {};
  let reject: (reason: unknown) => void = () => {};
  const promise = new Promise<void>((onResolve, onReject) => {
    resolve = onResolve;
    reject = onReject;
  });
  promise.catch(() => {});
  return { promise, resolve, reject };
}
