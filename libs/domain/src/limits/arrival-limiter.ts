import { BucketTable } from "./bucket-table.ts";
import { type BucketLimits, fullBucket, msUntilOne, type TokenBucket, takeOne } from "./token-bucket.ts";

/** The limits of an ArrivalLimiter. */
export interface ArrivalLimits {
  /** The limit for all arrivals together. */
  readonly total: BucketLimits;
  /** The limit for each key. */
  readonly perKey: BucketLimits;
  /** Maximum number of keys to remember. */
  readonly maxKeys: number;
}

/** Whether an arrival is admitted now, or else when to retry. */
export type ArrivalDecision =
  | { readonly ok: true }
  | { readonly ok: false; readonly limit: "total" | "key"; readonly retryAfterMs: number };

/** The longest retry delay of a refused arrival. */
const LONGEST_WAIT_MS = 60_000;

/**
 * Admits a limited number of arrivals per second, in total and per key. Refused arrivals get different retry
 * times, spaced by the rate of admission, so that they do not all return at the same time.
 */
export class ArrivalLimiter {
  readonly #limits: ArrivalLimits;
  readonly #keys: BucketTable;
  #total: TokenBucket;
  #lastSlotAtMs = 0;

  constructor(limits: ArrivalLimits, nowMs: number) {
    this.#limits = limits;
    this.#total = fullBucket(limits.total, nowMs);
    this.#keys = new BucketTable(limits.perKey, limits.maxKeys);
  }

  /** Ask for admission. A null key is subject only to the total limit. */
  ask(key: string | null, nowMs: number): ArrivalDecision {
    const { total, perKey } = this.#limits;
    const keyWaitMs = key === null ? 0 : this.#keys.msUntilOne(key, nowMs);
    if (keyWaitMs > 0) {
      const retryAfterMs = this.#slotAfter(keyWaitMs, perKey, nowMs);
      return { ok: false, limit: "key", retryAfterMs };
    }
    const taken = takeOne(this.#total, total, nowMs);
    if (taken === null) {
      const waitMs = msUntilOne(this.#total, total, nowMs);
      return { ok: false, limit: "total", retryAfterMs: this.#slotAfter(waitMs, total, nowMs) };
    }
    this.#total = taken;
    if (key !== null) this.#keys.take(key, nowMs);
    return { ok: true };
  }

  /** Return the permit of a request that failed. */
  giveBack(key: string | null): void {
    const level = Math.min(this.#limits.total.burst, this.#total.level + 1);
    this.#total = { ...this.#total, level };
    if (key !== null) this.#keys.giveBack(key);
  }

  /**
   * The next unassigned retry time. If this time exceeds the longest wait, assignment starts again from the
   * earliest time.
   */
  #slotAfter(waitMs: number, { perSecond }: BucketLimits, nowMs: number): number {
    const first = nowMs + waitMs;
    const next = Math.max(first, this.#lastSlotAtMs + 1000 / perSecond);
    const slotAtMs = next - nowMs > LONGEST_WAIT_MS ? first : next;
    this.#lastSlotAtMs = slotAtMs;
    return Math.ceil(slotAtMs - nowMs);
  }
}
