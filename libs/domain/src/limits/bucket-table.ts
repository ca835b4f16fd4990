import { type BucketLimits, fullBucket, msUntilOne, type TokenBucket, takeOne } from "./token-bucket.ts";

/**
 * A bucket for each of a bounded number of keys. For a new key the one used longest ago is forgotten, which is
 * as if its bucket were full: memory is bounded whatever comes, and what is forgotten is lenient.
 */
export class BucketTable {
  readonly #limits: BucketLimits;
  readonly #maxKeys: number;
  readonly #buckets = new Map<string, TokenBucket>();

  constructor(limits: BucketLimits, maxKeys: number) {
    this.#limits = limits;
    this.#maxKeys = maxKeys;
  }

  /** How many keys are remembered. */
  get size(): number {
    return this.#buckets.size;
  }

  /** Milliseconds until one can be taken from a key's bucket; 0 when it can now. */
  msUntilOne(key: string, nowMs: number): number {
    const bucket = this.#buckets.get(key);
    return bucket === undefined ? 0 : msUntilOne(bucket, this.#limits, nowMs);
  }

  /** Take one from a key's bucket. False when there is none. */
  take(key: string, nowMs: number): boolean {
    const bucket = this.#buckets.get(key) ?? fullBucket(this.#limits, nowMs);
    const taken = takeOne(bucket, this.#limits, nowMs);
    this.#remember(key, taken ?? bucket);
    return taken !== null;
  }

  /** Return one that was taken and not used. */
  giveBack(key: string): void {
    const bucket = this.#buckets.get(key);
    if (bucket === undefined) return;
    const level = Math.min(this.#limits.burst, bucket.level + 1);
    this.#buckets.set(key, { ...bucket, level });
  }

  /** A Map iterates in the order of insertion, so the first is the one that was used longest ago. */
  #remember(key: string, bucket: TokenBucket): void {
    this.#buckets.delete(key);
    for (const oldest of this.#buckets.keys()) {
      if (this.#buckets.size < this.#maxKeys) break;
      this.#buckets.delete(oldest);
    }
    this.#buckets.set(key, bucket);
  }
}
