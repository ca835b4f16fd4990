import { type BucketLimits, fullBucket, msUntilOne, type TokenBucket, takeOne } from "./token-bucket.ts";

/**
 * Token buckets for a bounded number of keys. A new key replaces the least recently used key, which starts
 * with a full bucket when it returns. So memory is bounded, and forgetting a key is lenient.
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

  /** Milliseconds until a token can be taken from a key's bucket; 0 if it can be taken now. */
  msUntilOne(key: string, nowMs: number): number {
    const bucket = this.#buckets.get(key);
    return bucket === undefined ? 0 : msUntilOne(bucket, this.#limits, nowMs);
  }

  /** Take a token from a key's bucket. Returns false if the bucket is empty. */
  take(key: string, nowMs: number): boolean {
    const bucket = this.#buckets.get(key) ?? fullBucket(this.#limits, nowMs);
    const taken = takeOne(bucket, this.#limits, nowMs);
    this.#remember(key, taken ?? bucket);
    return taken !== null;
  }

  /** Return an unused token. */
  giveBack(key: string): void {
    const bucket = this.#buckets.get(key);
    if (bucket === undefined) return;
    const level = Math.min(this.#limits.burst, bucket.level + 1);
    this.#buckets.set(key, { ...bucket, level });
  }

  /**
   * Insert the key last. A Map iterates in insertion order, so the first key is the least recently used.
   */
  #remember(key: string, bucket: TokenBucket): void {
    this.#buckets.delete(key);
    for (const oldest of this.#buckets.keys()) {
      if (this.#buckets.size < this.#maxKeys) break;
      this.#buckets.delete(oldest);
    }
    this.#buckets.set(key, bucket);
  }
}
