import { EVERY_EVENT, type EventInterest, isOfInterest, unitedInterest } from "@rollcall/domain";
import { type Clock, fullJitter, type Logger, systemClock, WakeUp } from "@rollcall/process";
import type { ReservedStore } from "../database/store.ts";
import { createDeferred, type Deferred } from "./deferred.ts";
import { currentRevision, type EventBatch, readEvents, type StoredEvent } from "./events.ts";
import { listenUntil, NotificationArrival, type NotificationState } from "./notifications.ts";

/** What a feed needs. */
export interface EventFeedOptions {
  readonly store: ReservedStore;
  readonly log: Logger;
  /** How often to look without being woken; 1000. */
  readonly pollMs?: number;
  /** Events in one delivery at most; 500. */
  readonly batchSize?: number;
  readonly clock?: Clock;
}

/** Who reads the log by a feed, and what of it. */
export interface FollowOptions {
  /** What it is called in metrics, in snake_case; absent means "other". */
  readonly name?: string;
  /** What it wants of the log; absent means all. */
  readonly interest?: EventInterest;
  /** Begin after this revision; absent means after the present position of the feed. */
  readonly after?: bigint;
  /** Shortest time between two looks: commits of that time are read at once. The least of all followers. Default 0. */
  readonly gatherMs?: number;
  /**
   * Receive events in order, each once; everything of interest up to `through` has been delivered then. Called without
   * events when the log has grown by others only. It must not block; what it throws is logged, and others are called.
   */
  readonly deliver: (events: readonly StoredEvent[], through: bigint) => void;
}

/** One follower of a feed. */
export interface Following {
  /** Everything of interest up to here has been delivered. */
  readonly position: bigint;
  /** Resolves when the follower is where the feed is; rejects when the feed is closed before. */
  readonly caughtUp: Promise<void>;
  /**
   * Resolves once everything of interest up to a revision has been delivered to this follower; rejects when it leaves,
   * the feed is closed, or `signal` aborts before.
   */
  caughtUpTo(revision: bigint, signal?: AbortSignal): Promise<void>;
  /** Stop. Nothing is delivered afterwards. */
  leave(): void;
}

/** How far a follower is behind the log. */
export interface FollowerLag {
  readonly name: string;
  /** Revisions that are known to be in the log, and have not been delivered. */
  readonly revisions: number;
  /** Since it was last known to have all that is in the log. */
  readonly sinceEndMs: number;
}

interface Follower {
  readonly options: FollowOptions;
  readonly interest: EventInterest;
  readonly caughtUp: Deferred;
  position: bigint;
  /** When it was last at the end of the log. */
  endAtMs: number;
}

interface Waiter extends Deferred {
  readonly revision: bigint;
  /** Null for the feed as a whole. */
  readonly follower: Follower | null;
}

const CHANNEL = "rollcall_events";
const DEFAULT_POLL_MS = 1_000;
const DEFAULT_BATCH_SIZE = 500;
/** Between two looks while there are no followers. */
const IDLE_GATHER_MS = 100;
const BACKOFF_BASE_MS = 100;
const BACKOFF_MAX_MS = 2_000;

/**
 * The log as it grows, read once for all followers in this process: over one connection that is woken by notifications,
 * and by polling when those fail. Events that no follower wants are not read. It goes on from where it was whenever the
 * server comes back. A follower that begins further back, or joins while a batch is read, catches up by reads of its
 * own, between those for all.
 */
export class EventFeed {
  readonly #options: EventFeedOptions;
  readonly #clock: Clock;
  readonly #arrival: NotificationArrival;
  readonly #wakeUp = new WakeUp();
  readonly #ending = new AbortController();
  readonly #followers = new Set<Follower>();
  readonly #waiters = new Set<Waiter>();
  /** What listens on other channels. */
  readonly #listeners = new Map<string, (payload: string | null) => void>();
  #position = 0n;
  /** The log goes at least this far. */
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

  /** Everything up to here has been delivered to all that have caught up. */
  get position(): bigint {
    return this.#position;
  }

  /** The history of the log to which `position` belongs. */
  get logId(): string {
    return this.#logId;
  }

  /** Whether notifications of Postgres arrive. While they do not, the feed finds what is new by polling. */
  get notifications(): NotificationState {
    return this.#arrival.state;
  }

  /** Follow the log. Those who follow before the feed starts, and name no revision, begin where it starts. */
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
   * Listen on another channel over the feed's connection. To be called before the feed starts, once for each channel.
   *
   * @param wake called with the payload of each notification, and with null whenever some may have been missed.
   */
  listen(channel: string, wake: (payload: string | null) => void): void {
    if (this.#starting !== null || this.#listeners.has(channel)) throw new Error(`too late to listen on ${channel}`);
    this.#listeners.set(channel, wake);
  }

  /**
   * Begin, after a revision or at the end of the log, unless it has begun; resolves when the log has been read to its
   * end once. Rejects when the feed is closed before, or when the end of the log cannot be read: call it again.
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
   * Resolves once everything up to `revision` has been delivered to those who have caught up; rejects when the feed is
   * closed first or `signal` aborts. A follower may still be behind: its own caughtUpTo() says when it is not.
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

  /** Stop. Nothing is delivered afterwards. */
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

  /** A new connection: notifications may have been missed, and the server may be another copy than before. */
  #onMissed(): void {
    this.#isHistoryKnown = false;
    this.#wakeUp.call();
    for (const wake of this.#listeners.values()) wake(null);
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

  /** Read the next batch for all who have caught up; true when that was the end of the log. */
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

  /** The log has been read to its end. */
  #noteEnd(): void {
    const nowMs = this.#clock.nowMs();
    for (const follower of this.#followers) if (follower.position >= this.#position) follower.endAtMs = nowMs;
  }

  /**
   * Read on for the followers furthest back; true on progress. A failure delays no other: the next turn retries.
   */
  async #helpOneCatchUp(): Promise<boolean> {
    try {
      return await this.#readForLast();
    } catch (err) {
      if (!this.#ending.signal.aborted) this.#options.log.warn({ err }, "feed cannot read what a follower lacks");
      return false;
    }
  }

  /** Read the next batch for the followers furthest back, up to the position of the next ones. */
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
      // The log ends before what was delivered: it may have been restored, which is looked at in the next turn.
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
      // A listener before it may have had it leave.
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
    // Only the end of the feed interrupts it, and the loop sees that itself.
    await this.#clock.sleep(ms, this.#ending.signal).catch(() => {});
  }
}
