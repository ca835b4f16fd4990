/** How fast a bucket fills, and how much it holds. */
export interface BucketLimits {
  /** More than 0. */
  readonly perSecond: number;
  /** How many tokens a full bucket holds; at least 1. */
  readonly burst: number;
}

/** A bucket's state when it was last used. */
export interface TokenBucket {
  /** The number of tokens, from 0 to the burst. */
  readonly level: number;
  /** Monotonic milliseconds. */
  readonly atMs: number;
}

export function fullBucket({ burst }: BucketLimits, nowMs: number): TokenBucket {
  return { level: burst, atMs: nowMs };
}

/** The state of a bucket at `nowMs`. If the clock was set back, no tokens are added. */
export function fillBucket(bucket: TokenBucket, limits: BucketLimits, nowMs: number): TokenBucket {
  const elapsedMs = Math.max(0, nowMs - bucket.atMs);
  const level = Math.min(limits.burst, bucket.level + (elapsedMs * limits.perSecond) / 1000);
  return { level, atMs: Math.max(nowMs, bucket.atMs) };
}

/** Milliseconds until a token can be taken; 0 if it can be taken now. */
export function msUntilOne(bucket: TokenBucket, limits: BucketLimits, nowMs: number): number {
  const { level } = fillBucket(bucket, limits, nowMs);
  return hasOne(level) ? 0 : ((1 - level) * 1000) / limits.perSecond;
}

/** The bucket after taking a token; null if the bucket is empty. */
export function takeOne(bucket: TokenBucket, limits: BucketLimits, nowMs: number): TokenBucket | null {
  const filled = fillBucket(bucket, limits, nowMs);
  return hasOne(filled.level) ? { ...filled, level: Math.max(0, filled.level - 1) } : null;
}

/**
 * Whether a bucket has a token. Tolerates rounding errors, so that a caller that waits for the
 * returned time always finds a token.
 */
function hasOne(level: number): boolean {
  return level >= 1 - 1e-9;
}
