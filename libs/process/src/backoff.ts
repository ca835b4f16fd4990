/** A limit that doubles with each attempt. */
export interface Backoff {
  /** Attempts that have failed before this wait, the last one not counted: 0 after the first failure. */
  readonly attempt: number;
  /** The limit after the first failure. */
  readonly baseMs: number;
  /** The limit never exceeds this. */
  readonly maxMs: number;
}

/** The limit itself, for what waits alone. */
export function backoffMs({ attempt, baseMs, maxMs }: Backoff): number {
  return Math.min(maxMs, baseMs * 2 ** attempt);
}

/**
 * A time from nothing to the limit, in whole milliseconds: full jitter spreads the callers that one outage lined up
 * (https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/).
 *
 * @param options `random01` is a random number from 0 to less than 1.
 */
export function fullJitter({ random01, ...backoff }: Backoff & { readonly random01: number }): number {
  return Math.floor(random01 * backoffMs(backoff));
}

/** A time from half of the limit to the limit, so that what fails at once does not spin. */
export function halfJitter({ random01, ...backoff }: Backoff & { readonly random01: number }): number {
  return Math.round(backoffMs(backoff) * (0.5 + random01 / 2));
}
