/** How fast a bucket fills, and how much it holds. */
export interface BucketLimits {
  /** More than 0. */
  readonly perSecond: number;
  /** What may be taken at once after a long time without any; 1 at least. */
  readonly burst: number;
}

/** A bucket as it was when it was last looked at. */
export interface TokenBucket {
  /** From 0 to the burst. */
  readonly level: number;
  /** Monotonic milliseconds. */
  readonly atMs: number;
}

/** A bucket that is full. */
export function fullBucket({ burst }: BucketLimits, nowMs: number): TokenBucket {
  return { level: burst, atMs: nowMs };
}

/** The bucket as it is now. A clock that went back fills nothing. */
export function fillBucket(bucket: TokenBucket, limits: BucketLimits, nowMs: number): TokenBucket {
  const elapsedMs = Math.max(0, nowMs - bucket.atMs);
  const level = Math.min(limits.burst, bucket.level + (elapsedMs * limits.perSecond) / 1000);
  return { level, atMs: Math.max(nowMs, bucket.atMs) };
}

/** Milliseconds until one can be taken; 0 when it can now. */
export function msUntilOne(bucket: TokenBucket, limits: BucketLimits, nowMs: number): number {
  const { level } = fillBucket(bucket, limits, nowMs);
  return hasOne(level) ? 0 : ((1 - level) * 1000) / limits.perSecond;
}

/** The bucket after one was taken; null when there is none to take. */
export function takeOne(bucket: TokenBucket, limits: BucketLimits, nowMs: number): TokenBucket | null {
  const filled = fillBucket(bucket, limits, nowMs);
  return hasOne(filled.level) ? { ...filled, level: Math.max(0, filled.level - 1) } : null;
}

/** A caller that waited for as long as it was told finds one, in spite of how fractions are rounded. */
function hasOne(level: number): boolean {
  return level >= 1 - 1e-9;
}
