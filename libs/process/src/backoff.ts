export interface Backoff {
  /** Number of failures before the last one: 0 after the first failure. */
  readonly attempt: number;
  /** Upper bound of the delay after the first failure. It doubles with each further failure, up to `maxMs`. */
  readonly baseMs: number;
  /** The upper bound of the delay after any number of failures. */
  readonly maxMs: number;
}

/** The limit of the delay, for waits that need no jitter. */
export function backoffMs({ attempt, baseMs, maxMs }: Backoff): number {
  return Math.min(maxMs, baseMs * 2 ** attempt);
}

/**
 * A delay from zero to the limit, in whole milliseconds. This full jitter spreads callers that failed at the
 * same time (https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/).
 *
 * @param options `random01` is a random number from 0 to less than 1.
 */
export function fullJitter({ random01, ...backoff }: Backoff & { readonly random01: number }): number {
  return Math.floor(random01 * backoffMs(backoff));
}

/**
 * A delay from half of the limit to the limit, so that something that fails immediately does not cause a busy
 * loop.
 */
export function halfJitter({ random01, ...backoff }: Backoff & { readonly random01: number }): number {
  return Math.round(backoffMs(backoff) * (0.5 + random01 / 2));
}
