import type { Thresholds } from "../policy/policy.ts";
import type { HealthState } from "../states.ts";

/** The timing of one node as its owner sees it; changed through the detector alone. */
export interface Timing<T> {
  readonly subject: T;
  readonly health: HealthState;
  /** When a frame was last received, or a goodbye declared. */
  readonly lastReceivedMs: number;
  readonly thresholds: Thresholds;
}

/** One node whose silence has reached a threshold. */
export interface Due<T> {
  readonly timing: Timing<T>;
  readonly from: HealthState;
  /** UNKNOWN at once for a healthy node whose silence is already that long. */
  readonly to: "UNHEALTHY" | "UNKNOWN";
  readonly silentMs: number;
  /** When the silence reached the threshold: after the call of `advance()` before this one. */
  readonly deadlineMs: number;
}

/**
 * Find the nodes that fall silent, in time that does not depend on how many there are: O(1) a frame, and per tick only
 * the nodes whose time has come.
 *
 * A hashed timing wheel with lazy deadlines. A node waits in the bucket of the tick within which its deadline lies. A
 * frame only notes the time; the node stays where it is. When its bucket comes due, a node that was heard of meanwhile
 * moves on to the bucket of its new deadline, and the others are declared. One whose deadline is still to come within
 * that tick stays, and the bucket is looked at again by the next call: so it does not matter at which moment of its
 * ticks the wheel is moved. A deadline beyond the wheel waits in the farthest bucket and moves on from there.
 *
 * All times are milliseconds of one clock that never runs backwards and starts at 0 or later; `ObservedTime` is meant.
 */
export class Detector<T> {
  readonly #tickMs: number;
  readonly #buckets: (Entry<T> | null)[];
  /** The tick of the last call of advance(): its bucket holds nodes whose deadline was still to come then. */
  #tick = 0;
  #size = 0;
  #examined = 0;

  /**
   * @param options `tickMs` is how often `advance()` is meant to be called; whenever that is, it declares the nodes
   *   whose deadline has passed. `wheelTicks` is the length of the wheel (1024), which bounds the buckets that one
   *   `advance()` visits.
   */
  constructor(options: { readonly tickMs: number; readonly wheelTicks?: number }) {
    this.#tickMs = options.tickMs;
    this.#buckets = new Array<Entry<T> | null>(options.wheelTicks ?? DEFAULT_WHEEL_TICKS).fill(null);
  }

  /** How many nodes are timed. */
  get size(): number {
    return this.#size;
  }

  /** How many times a node was looked at since the start: what the detector costs beyond its ticks. */
  get examined(): number {
    return this.#examined;
  }

  /**
   * Begin to time a node.
   *
   * @param state `lastReceivedMs` may lie ahead, which extends the first deadline by as much. A node that is UNKNOWN,
   *   for example because it never connected, has no deadline until it is declared HEALTHY.
   */
  track(
    subject: T,
    state: {
      readonly health: HealthState;
      readonly lastReceivedMs: number;
      readonly thresholds: Thresholds;
    },
  ): Timing<T> {
    const entry = new Entry(subject, state.health, state.lastReceivedMs, state.thresholds);
    this.#size += 1;
    this.#arm(entry);
    return entry;
  }

  /** Stop timing a node. Whatever is still done with its timing has no effect. */
  untrack(timing: Timing<T>): void {
    const entry = timing as Entry<T>;
    if (entry.bucket === RETIRED) return;
    this.#disarm(entry);
    entry.bucket = RETIRED;
    this.#size -= 1;
  }

  /**
   * Note that a frame was received. It never changes health, and it allocates nothing. A time ahead of now puts the
   * deadline off by as much, until the node is declared HEALTHY: for a node that was told to come back later.
   */
  touch(timing: Timing<T>, nowMs: number): void {
    const entry = timing as Entry<T>;
    if (nowMs > entry.lastReceivedMs) entry.lastReceivedMs = nowMs;
  }

  /** Set a node's health without waiting for silence, as for a goodbye. What follows is counted from `nowMs`. */
  declare(timing: Timing<T>, health: HealthState, nowMs: number): void {
    const entry = timing as Entry<T>;
    if (entry.bucket === RETIRED) return;
    entry.lastReceivedMs = nowMs;
    entry.health = health;
    this.#rearm(entry);
  }

  /** Let other thresholds apply from now on. A node that is already over the new one is declared at the next tick. */
  setThresholds(timing: Timing<T>, thresholds: Thresholds): void {
    const entry = timing as Entry<T>;
    if (entry.bucket === RETIRED) return;
    entry.thresholds = thresholds;
    this.#rearm(entry);
  }

  /**
   * Declare the nodes whose time has come; each is in its new state when this returns. Nodes are in no particular
   * order. The cost is one bucket a tick passed, the length of the wheel at most, and one look at each node in these.
   */
  advance(nowMs: number): Due<T>[] {
    const nowTick = Math.floor(nowMs / this.#tickMs);
    let passed = this.#takeBuckets(nowTick);
    const due: Due<T>[] = [];
    while (passed !== null) {
      const entry: Entry<T> = passed;
      passed = entry.next;
      entry.next = null;
      entry.bucket = UNARMED;
      this.#examined += 1;
      const declared = judge(entry, nowMs);
      if (declared !== null) due.push(declared);
      this.#arm(entry);
    }
    return due;
  }

  /** Empty the buckets up to a tick into one list, apart, so that none of its nodes is met again while moving on. */
  #takeBuckets(nowTick: number): Entry<T> | null {
    const wheelTicks = this.#buckets.length;
    const last = Math.min(nowTick, this.#tick + wheelTicks - 1);
    let taken: Entry<T> | null = null;
    for (let tick = this.#tick; tick <= last; tick++) {
      const bucket = tick % wheelTicks;
      let entry = this.#buckets[bucket] ?? null;
      this.#buckets[bucket] = null;
      while (entry !== null) {
        const next: Entry<T> | null = entry.next;
        entry.next = taken;
        entry.previous = null;
        taken = entry;
        entry = next;
      }
    }
    this.#tick = Math.max(this.#tick, nowTick);
    return taken;
  }

  #rearm(entry: Entry<T>): void {
    this.#disarm(entry);
    this.#arm(entry);
  }

  #arm(entry: Entry<T>): void {
    if (entry.health === "UNKNOWN") return;
    const dueTick = Math.floor(nextDeadlineMs(entry) / this.#tickMs);
    const wheelTicks = this.#buckets.length;
    const tick = Math.min(Math.max(dueTick, this.#tick), this.#tick + wheelTicks - 1);
    const bucket = tick % wheelTicks;
    const head = this.#buckets[bucket] ?? null;
    entry.bucket = bucket;
    entry.next = head;
    if (head !== null) head.previous = entry;
    this.#buckets[bucket] = entry;
  }

  #disarm(entry: Entry<T>): void {
    const { bucket, previous, next } = entry;
    if (bucket < 0) return;
    if (previous === null) this.#buckets[bucket] = next;
    else previous.next = next;
    if (next !== null) next.previous = previous;
    entry.previous = null;
    entry.next = null;
    entry.bucket = UNARMED;
  }
}

const DEFAULT_WHEEL_TICKS = 1024;
/** In place of a bucket: a node that waits for nothing. */
const UNARMED = -1;
/** In place of a bucket: a node that is no longer timed. */
const RETIRED = -2;

/** Links of the bucket's list are in the node itself: about 100 bytes a node in all, and nothing else to keep. */
class Entry<T> implements Timing<T> {
  readonly subject: T;
  health: HealthState;
  lastReceivedMs: number;
  thresholds: Thresholds;
  bucket = UNARMED;
  previous: Entry<T> | null = null;
  next: Entry<T> | null = null;

  constructor(subject: T, health: HealthState, lastReceivedMs: number, thresholds: Thresholds) {
    this.subject = subject;
    this.health = health;
    this.lastReceivedMs = lastReceivedMs;
    this.thresholds = thresholds;
  }
}

/** The earliest time at which a node that stays silent is declared. */
function nextDeadlineMs<T>(entry: Entry<T>): number {
  const { unhealthyAfterMs, unknownAfterMs } = entry.thresholds;
  const earliestMs = Math.min(unhealthyAfterMs, unknownAfterMs);
  return entry.lastReceivedMs + (entry.health === "HEALTHY" ? earliestMs : unknownAfterMs);
}

/** Move a node into the state that its silence calls for, if it is another than its own. */
function judge<T>(entry: Entry<T>, nowMs: number): Due<T> | null {
  const { health: from, lastReceivedMs, thresholds } = entry;
  const unhealthyAtMs = lastReceivedMs + thresholds.unhealthyAfterMs;
  const unknownAtMs = lastReceivedMs + thresholds.unknownAfterMs;
  const silentMs = nowMs - lastReceivedMs;
  if (nowMs >= unknownAtMs) {
    entry.health = "UNKNOWN";
    return { timing: entry, from, to: "UNKNOWN", silentMs, deadlineMs: unknownAtMs };
  }
  if (nowMs >= unhealthyAtMs && from === "HEALTHY") {
    entry.health = "UNHEALTHY";
    return { timing: entry, from, to: "UNHEALTHY", silentMs, deadlineMs: unhealthyAtMs };
  }
  return null;
}
