import { EVERY_EVENT, type EventInterest, isOfInterest, unitedInterest } from "@rollcall/domain";
import { type Clock, fullJitter, type Logger, systemClock, WakeUp } from "@rollcall/process";
import type { ReservedStore } from "../database/store.ts";
import { createDeferred, type Deferred } from "./deferred.ts";
import { currentRevision, type EventBatch, type EventRow, readEvents } from "./events.ts";
import { listenUntil, NotificationArrival, type NotificationState } from "./notifications.ts";

export interface EventFeedOptions {
  readonly store: ReservedStore;
  readonly log: Logger;
  /** Interval between polls when no notification arrives, in milliseconds. Default 1000. */
  readonly pollMs?: number;
  /** Maximum number of events per delivery. Default 500. */
  readonly batchSize?: number;
  readonly clock?: Clock;
}

/** A follower's name, the events it wants, and its callback. */
export interface FollowOptions {
  /** The follower's name in metrics, in snake_case; absent means "other". */
  readonly name?: string;
  /** Which events the follower wants; absent means all. */
  readonly interest?: EventInterest;
  /** Start after this revision; absent means after the feed's current position. */
  readonly after?: bigint;
  /** Shortest time between two polls, 0 by default. The shortest time of all followers applies. */
  readonly gatherMs?: number;
  /**
   * Receives each event once, in order, and then the revision up to which all wanted events have arrived. Called
   * without events when only unwanted events were appended. Must not block. Its errors are logged.
   */
  readonly deliver: (events: readonly EventRow[], through: bigint) => void;
}

export interface Following {
  /** All wanted events up to this revision have been delivered. */
  readonly position: bigint;
  /** Resolves when the follower has reached the feed's position. Rejects when the feed is closed first. */
  readonly caughtUp: Promise<void>;
  /**
   * Resolves once this follower has received all wanted events up to a revision. Rejects if the follower leaves, the
   * feed is closed, or `signal` aborts first.
   */
  caughtUpTo(revision: bigint, signal?: AbortSignal): Promise<void>;
  leave(): void;
}

export interface FollowerLag {
  readonly name: string;
  /** Number of revisions that the log is known to have, but that are not delivered yet. */
  readonly revisions: number;
  /** Time since the follower was last at the end of the log. */
  readonly sinceEndMs: number;
}

interface Follower {
  readonly options: FollowOptions;
  readonly interest: EventInterest;
  readonly caughtUp: Deferred;
  position: bigint;
  endAtMs: number;
}

interface Waiter extends Deferred {
  readonly revision: bigint;
  /** The follower to wait for; null for the feed as a whole. */
  readonly follower: Follower | null;
}

const CHANNEL = "rollcall_events";
const DEFAULT_POLL_MS = 1_000;
const DEFAULT_BATCH_SIZE = 500;
/** Longest time that the feed waits between two polls to gather events. */
const IDLE_GATHER_MS = 100;
const BACKOFF_BASE_MS = 100;
const BACKOFF_MAX_MS = 2_000;

/**
 * Follows the log for all followers in this process, over one connection. Reads after a notification or by polling, and
 * resumes after an outage where it stopped. A follower that is behind catches up with separate reads.
 */
export class EventFeed {
  readonly #options: EventFeedOptions;
  readonly #clock: Clock;
  readonly #arrival: NotificationArrival;
  readonly #wakeUp = new WakeUp();
  readonly #ending = new AbortController();
  readonly #followers = new Set<Follower>();
  readonly #waiters = new Set<Waiter>();
  /** Callbacks for other channels, keyed by channel. */
  readonly #listeners = new Map<string, (payload: string | null) => void>();
  #position = 0n;
  /** The highest revision that the log is known to have. */
  #head = 0n;
  #logId: string;
  #isHistoryKnown = true;
  #starting: Promise<void> | null = null;
  #loops: Promise<unknown> | null = null;

  constructor(options: EventFeedOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#arrival = new NotificationArrival(options.store.db, options.log);
    this.#logId = options.store.logId();
  }

  /** All events up to this revision have been delivered to the followers that have caught up. */
  get position(): bigint {
    return this.#position;
  }

  /** The id of the history of the log to which `position` belongs. */
  get logId(): string {
    return this.#logId;
  }

  /** Whether notifications from Postgres arrive. While they do not, the feed polls. */
  get notifications(): NotificationState {
    return this.#arrival.state;
  }

  /** Follow the log. If a follower without a revision joins before the feed starts, it starts where the feed starts. */
  follow(options: FollowOptions): Following {
    const { interest = EVERY_EVENT, after = this.#position } = options;
    const caughtUp = createDeferred();
    const follower: Follower = { options, interest, position: after, caughtUp, endAtMs: this.#clock.nowMs() };
    this.#followers.add(follower);
    if (this.#ending.signal.aborted) follower.caughtUp.reject(this.#ending.signal.reason);
    else if (this.#loops !== null && after >= this.#position) follower.caughtUp.resolve();
    else this.#wakeUp.call();
    return {
      get position() {
        return follower.position;
      },
      caughtUp: follower.caughtUp.promise,
      caughtUpTo: (revision, signal) => this.#reach(revision, follower, signal),
      leave: () => {
        const reason = new Error("the follower has left");
        this.#followers.delete(follower);
        follower.caughtUp.reject(reason);
        for (const waiter of this.#waiters) if (waiter.follower === follower) waiter.reject(reason);
      },
    };
  }

  /** How far each follower is behind the log. */
  lags(): readonly FollowerLag[] {
    const nowMs = this.#clock.nowMs();
    const head = this.#head;
    return [...this.#followers].map(({ options, position, endAtMs }) => ({
      name: options.name ?? "other",
      revisions: Number(head > position ? head - position : 0n),
      sinceEndMs: nowMs - endAtMs,
    }));
  }

  /**
   * Listen on another channel over the feed's connection. Call it before the feed starts, once for each channel.
   *
   * @param wake called with the payload of each notification, and with null when some may have been missed.
   */
  listen(channel: string, wake: (payload: string | null) => void): void {
    if (this.#starting !== null || this.#listeners.has(channel)) throw new Error(`too late to listen on ${channel}`);
    this.#listeners.set(channel, wake);
  }

  /**
   * Start after a revision, or at the end of the log. No effect if the feed has already started. Resolves when the log
   * has been read to its end once. Rejects when the feed is closed or the end cannot be read. In that case, it can be
   * called again.
   */
  async start(afterRevision?: bigint): Promise<void> {
    this.#starting ??= this.#start(afterRevision).catch((error: unknown) => {
      this.#starting = null;
      throw error;
    });
    await this.#starting;
  }

  async #start(afterRevision?: bigint): Promise<void> {
    const { store, log } = this.#options;
    const { signal } = this.#ending;
    this.#position = afterRevision ?? (await currentRevision(store.db));
    signal.throwIfAborted();
    for (const follower of this.#followers) {
      if (follower.options.after === undefined) follower.position = this.#position;
      if (follower.position >= this.#position) follower.caughtUp.resolve();
    }
    const firstEnd = createDeferred();
    signal.addEventListener("abort", () => firstEnd.reject(signal.reason), { once: true });
    const listening = listenUntil(
      [CHANNEL, ...this.#listeners.keys()],
      {
        url: store.address.directUrl ?? store.address.url,
        applicationName: `${store.applicationName} feed`,
        log,
        clock: this.#clock,
        onNotified: (channel, payload) => this.#onNotification(channel, payload),
        onMissed: () => this.#onMissed(),
        arrival: this.#arrival,
      },
      signal,
    );
    this.#loops = Promise.all([listening, this.#follow(firstEnd.resolve)]);
    await firstEnd.promise;
  }

  /**
   * Resolves once followers that are not behind have received all events up to `revision`. Rejects when the feed is
   * closed or `signal` aborts first. A follower that may be behind has its own caughtUpTo().
   */
  caughtUpTo(revision: bigint, signal?: AbortSignal): Promise<void> {
    return this.#reach(revision, null, signal);
  }

  async #reach(revision: bigint, follower: Follower | null, signal?: AbortSignal): Promise<void> {
    signal?.throwIfAborted();
    this.#ending.signal.throwIfAborted();
    if ((follower ?? { position: this.#position }).position >= revision) return;
    const waiter: Waiter = { revision, follower, ...createDeferred() };
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

  /** Stop the feed. Nothing is delivered afterwards. */
  async close(): Promise<void> {
    const reason = new Error("the feed is closed");
    this.#ending.abort(reason);
    for (const { reject } of this.#waiters) reject(reason);
    for (const { caughtUp } of this.#followers) caughtUp.reject(reason);
    await this.#loops;
  }

  #onNotification(channel: string, payload: string): void {
    if (channel !== CHANNEL) {
      this.#listeners.get(channel)?.(payload);
      return;
    }
    const revision = BigInt(payload);
    if (revision > this.#head) this.#head = revision;
    if (revision > this.#position) this.#wakeUp.call();
  }

  /** Called for a new connection: notifications may be missing, and the server may hold another history of the log. */
  #onMissed(): void {
    this.#isHistoryKnown = false;
    this.#wakeUp.call();
    for (const wake of this.#listeners.values()) wake(null);
  }

  /**
   * Check whether the log was replaced. After a restore or a promotion it may end below the feed's position, which then
   * moves back to the end of the log: everything appended afterwards is new.
   */
  async #checkHistory(): Promise<void> {
    const { store, log } = this.#options;
    // Compare with the feed's own copy of the log id. The store's copy may already be new, if another reader of this
    // process refreshed it.
    const before = this.#logId;
    const after = await store.refreshLogId();
    if (after !== before) {
      const head = await currentRevision(store.db);
      log.error({ before, after, position: `${this.#position}`, head: `${head}` }, "log replaced");
      if (head < this.#position) this.#position = head;
      this.#head = head;
      for (const follower of this.#followers) if (head < follower.position) follower.position = head;
      this.#logId = after;
    }
    this.#isHistoryKnown = true;
  }

  async #follow(onFirstEnd: () => void): Promise<void> {
    const { log, pollMs: atMostMs = DEFAULT_POLL_MS } = this.#options;
    const { signal } = this.#ending;
    let failures = 0;
    while (!signal.aborted) {
      try {
        if (!this.#isHistoryKnown) await this.#checkHistory();
        const atEnd = await this.#readOn();
        const isBehind = await this.#helpOneCatchUp();
        if (failures > 0) log.info({ failures }, "feed reads the log again");
        failures = 0;
        if (!atEnd) continue;
        this.#noteEnd();
        onFirstEnd();
        if (isBehind) continue;
        await this.#wakeUp.rest(this.#clock, { atMostMs, atLeastMs: this.#gatherMs() }, signal);
      } catch (err) {
        if (signal.aborted) return;
        log.warn({ err, failures }, "feed cannot read the log");
        await this.#pause(failures);
        failures += 1;
      }
    }
  }

  /** Read the next batch for all followers that have caught up. Returns whether the end of the log was reached. */
  async #readOn(): Promise<boolean> {
    const { batchSize = DEFAULT_BATCH_SIZE } = this.#options;
    const followers = [...this.#followers].filter(({ position }) => position === this.#position);
    const batch = await this.#read(followers, this.#position);
    if (this.#ending.signal.aborted) return true;
    this.#position = batch.through;
    if (batch.through > this.#head) this.#head = batch.through;
    this.#deliver(batch, followers);
    this.#endWaits();
    return batch.events.length < batchSize;
  }

  /** Record that the log has been read to its end. */
  #noteEnd(): void {
    const nowMs = this.#clock.nowMs();
    for (const follower of this.#followers) if (follower.position >= this.#position) follower.endAtMs = nowMs;
  }

  /**
   * Read for the followers that are furthest behind. Returns whether they made progress. The next iteration retries a
   * failure.
   */
  async #helpOneCatchUp(): Promise<boolean> {
    try {
      return await this.#readForLast();
    } catch (err) {
      if (!this.#ending.signal.aborted)
        this.#options.log.warn({ err }, "feed cannot read for a follower that is behind");
      return false;
    }
  }

  /** Read the next batch for the followers that are furthest behind, up to the position of the next followers. */
  async #readForLast(): Promise<boolean> {
    const { batchSize = DEFAULT_BATCH_SIZE } = this.#options;
    const positions = [...this.#followers].map(({ position }) => position).filter((it) => it < this.#position);
    const [lowest, next = this.#position] = [...new Set(positions)].toSorted((one, other) => (one < other ? -1 : 1));
    if (lowest === undefined) return false;
    const followers = [...this.#followers].filter(({ position }) => position === lowest);
    const batch = await this.#read(followers, lowest, next);
    if (this.#ending.signal.aborted) return false;
    this.#deliver(batch, followers);
    this.#endWaits();
    if (batch.through < next && batch.events.length < batchSize) {
      // Check the history next: the log ends below the feed's position, so it may have been restored.
      this.#isHistoryKnown = false;
      for (const { caughtUp } of followers) caughtUp.resolve();
    }
    return batch.through > lowest;
  }

  #read(followers: readonly Follower[], after: bigint, upTo?: bigint): Promise<EventBatch> {
    const { store, batchSize: limit = DEFAULT_BATCH_SIZE } = this.#options;
    const interest = unitedInterest(followers.map((follower) => follower.interest));
    return readEvents(store.db, { after, limit, interest, ...(upTo === undefined ? {} : { upTo }) });
  }

  #endWaits(): void {
    for (const { revision, follower, resolve } of this.#waiters) {
      if (revision <= (follower ?? { position: this.#position }).position) resolve();
    }
  }

  #deliver({ events, through }: EventBatch, followers: readonly Follower[]): void {
    for (const follower of followers) {
      // Skip this follower if a callback earlier in this loop has removed it.
      if (!this.#followers.has(follower)) continue;
      const isGrown = through > follower.position;
      follower.position = through;
      if (through >= this.#position) follower.caughtUp.resolve();
      if (!isGrown) continue;
      const { interest, options } = follower;
      try {
        options.deliver(interest.types === null ? events : events.filter((it) => isOfInterest(interest, it)), through);
      } catch (err) {
        this.#options.log.error({ err }, "feed listener failed");
      }
    }
  }

  #gatherMs(): number {
    return Math.min(...[...this.#followers].map(({ options }) => options.gatherMs ?? 0), IDLE_GATHER_MS);
  }

  async #pause(attempt: number): Promise<void> {
    const ms = fullJitter({
      attempt,
      baseMs: BACKOFF_BASE_MS,
      maxMs: BACKOFF_MAX_MS,
      random01: Math.random(),
    });
    // Ignore the rejection: only closing the feed interrupts the sleep, and the loop checks for that.
    await this.#clock.sleep(ms, this.#ending.signal).catch(() => {});
  }
}
