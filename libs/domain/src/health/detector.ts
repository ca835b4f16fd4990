import type { Thresholds } from "../policy/policy.ts";
import type { HealthState } from "../states.ts";

/** The timing of one node as its owner sees it. Only the detector changes it. */
export interface Timing<T> {
  readonly subject: T;
  readonly health: HealthState;
  /** When a frame was last received or a goodbye was declared. */
  readonly lastReceivedMs: number;
  readonly thresholds: Thresholds;
}

/** A node that has been silent for as long as a threshold allows. */
export interface Due<T> {
  readonly timing: Timing<T>;
  readonly from: HealthState;
  /**
   * The new state. A HEALTHY node goes directly to UNKNOWN if its silence already exceeds the threshold for UNKNOWN.
   */
  readonly to: "UNHEALTHY" | "UNKNOWN";
  readonly silentMs: number;
  /** When the silence reached the threshold. */
  readonly deadlineMs: number;
}

/**
 * Finds silent nodes in time independent of the number of nodes: O(1) per frame, and per tick only the nodes that are
 * due.
 *
 * This is a hashed timing wheel with lazy deadlines. A node waits in the bucket of the tick that contains its
 * deadline. A frame only records the time; the node stays in its bucket. When the bucket is due, each of its nodes
 * that has received a frame in the meantime moves to the bucket of its new deadline, and the other nodes are declared.
 * If a node's deadline is later within the current tick, the node stays and the next call examines the bucket again,
 * so the wheel can be advanced at any moment within a tick. A node whose deadline is beyond the wheel waits in the
 * farthest bucket and moves on from there.
 *
 * All times are milliseconds of one clock that never runs backwards and starts at 0 or later, such as `ObservedTime`.
 */
export class Detector<T> {
  readonly #tickMs: number;
  readonly #buckets: (Entry<T> | null)[];
  /** The tick of the last advance(). Nodes that are still in this tick's bucket were not due at that time. */
  #tick = 0;
  #size = 0;
  #examined = 0;

  /**
   * @param options `tickMs` is the interval at which `advance()` should be called; each call declares the nodes whose
   *   deadline has passed. `wheelTicks` is the length of the wheel (default 1024) and limits how many buckets one
   *   `advance()` visits.
   */
  constructor(options: { readonly tickMs: number; readonly wheelTicks?: number }) {
    this.#tickMs = options.tickMs;
    this.#buckets = new Array<Entry<T> | null>(options.wheelTicks ?? DEFAULT_WHEEL_TICKS).fill(null);
  }

  /** How many nodes are tracked. */
  get size(): number {
    return this.#size;
  }

  /** The number of times that nodes have been examined. This is the detector's cost apart from its ticks. */
  get examined(): number {
    return this.#examined;
  }

  /**
   * Start tracking a node.
   *
   * @param state `lastReceivedMs` can be in the future, which delays the first deadline accordingly. A node that is
   *   UNKNOWN, for example because it never connected, has no deadline until it is declared HEALTHY.
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

  /** Stop tracking a node. Later calls with its timing have no effect. */
  untrack(timing: Timing<T>): void {
    const entry = timing as Entry<T>;
    if (entry.bucket === RETIRED) return;
    this.#disarm(entry);
    entry.bucket = RETIRED;
    this.#size -= 1;
  }

  /**
   * Record that a frame was received. Never changes health and allocates nothing. For a node that was asked to return
   * later, the time can be in the future. This delays the deadline accordingly, unless the node is declared HEALTHY
   * first.
   */
  touch(timing: Timing<T>, nowMs: number): void {
    const entry = timing as Entry<T>;
    if (nowMs > entry.lastReceivedMs) entry.lastReceivedMs = nowMs;
  }

  /**
   * Set a node's health without waiting for silence, for example after a goodbye. The next deadline is counted from
   * `nowMs`.
   */
  declare(timing: Timing<T>, health: HealthState, nowMs: number): void {
    const entry = timing as Entry<T>;
    if (entry.bucket === RETIRED) return;
    entry.lastReceivedMs = nowMs;
    entry.health = health;
    this.#rearm(entry);
  }

  /** Change the thresholds. A node that already exceeds a new threshold is declared at the next tick. */
  setThresholds(timing: Timing<T>, thresholds: Thresholds): void {
    const entry = timing as Entry<T>;
    if (entry.bucket === RETIRED) return;
    entry.thresholds = thresholds;
    this.#rearm(entry);
  }

  /**
   * Declare the nodes whose deadline has passed, and return them in no particular order. Their timings already have
   * the new state. This visits one bucket per tick since the last call, up to the length of the wheel, and examines
   * each node in these buckets once.
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
      const declared = evaluate(entry, nowMs);
      if (declared !== null) due.push(declared);
      this.#arm(entry);
    }
    return due;
  }

  /**
   * Move the nodes of all buckets up to a tick into a separate list, so that a node that is put back into a later
   * bucket is not visited again.
   */
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
/** The `bucket` of a node without a deadline. */
const UNARMED = -1;
/** The `bucket` of a node that is no longer tracked. */
const RETIRED = -2;

/**
 * A node, which is also an element of its bucket's linked list. It takes about 100 bytes, and no other structure is
 * needed.
 */
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

/** When the node is declared if it stays silent. */
function nextDeadlineMs<T>(entry: Entry<T>): number {
  const { unhealthyAfterMs, unknownAfterMs } = entry.thresholds;
  const earliestMs = Math.min(unhealthyAfterMs, unknownAfterMs);
  return entry.lastReceivedMs + (entry.health === "HEALTHY" ? earliestMs : unknownAfterMs);
}

/** Update a node's state if its silence requires another state. Returns null if the state does not change. */
function evaluate<T>(entry: Entry<T>, nowMs: number): Due<T> | null {
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
