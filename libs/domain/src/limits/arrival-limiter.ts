import { BucketTable } from "./bucket-table.ts";
import { type BucketLimits, fullBucket, msUntilOne, type TokenBucket, takeOne } from "./token-bucket.ts";

/** What arrivals are limited by. */
export interface ArrivalLimits {
  /** All together. */
  readonly total: BucketLimits;
  /** Each key by itself. */
  readonly perKey: BucketLimits;
  /** Keys at most that are remembered. */
  readonly maxKeys: number;
}

/** Whether an arrival is admitted now, or when to come again. */
export type ArrivalVerdict =
  | { readonly ok: true }
  | { readonly ok: false; readonly limit: "total" | "key"; readonly retryAfterMs: number };

/** No arrival is sent away for longer. */
const LONGEST_WAIT_MS = 60_000;

/**
 * Admits a limited number a second, in all and by key. Those it turns away are given different times to come again, one
 * after the other at the rate at which they can be admitted, so that they do not all return at once.
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

  /** Ask to be let in; null is no key. */
  ask(key: string | null, nowMs: number): ArrivalVerdict {
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

  /** Return the permit of a failed request. */
  giveBack(key: string | null): void {
    const level = Math.min(this.#limits.total.burst, this.#total.level + 1);
    this.#total = { ...this.#total, level };
    if (key !== null) this.#keys.giveBack(key);
  }

  /** The next time that was not given out yet; beyond the longest wait, times are given out from the first again. */
  #slotAfter(waitMs: number, { perSecond }: BucketLimits, nowMs: number): number {
    const first = nowMs + waitMs;
    const next = Math.max(first, this.#lastSlotAtMs + 1000 / perSecond);
    const slotAtMs = next - nowMs > LONGEST_WAIT_MS ? first : next;
    this.#lastSlotAtMs = slotAtMs;
    return Math.ceil(slotAtMs - nowMs);
  }
}
