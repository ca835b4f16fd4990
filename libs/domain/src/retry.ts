/** Bounds of a waiting time in milliseconds. The actual time is chosen at random between them. */
export interface RetryRange {
  readonly leastMs: number;
  readonly mostMs: number;
}

/**
 * An agent extends a given time by up to this fraction, so that agents with the same time do not all return at the same
 * moment.
 */
const AGENT_SPREAD = 0.25;

/**
 * Time after a rejection during which the wait is at most 20 s, in milliseconds. A node that is approved after all then
 * returns soon, for example if the operator mistyped `reject` and notices immediately.
 */
const SOON_MS = 600_000;
const LONGEST_SOON_MS = 20_000;
const LONGEST_MS = 120_000;
/** The minimum wait as a fraction of the maximum. */
const LEAST_PART = 0.625;

/**
 * How long a rejected or banned node must wait before it asks again: at most 20 s during the first ten minutes after
 * the rejection, then a thirtieth of the time since the rejection, up to two minutes. The returned range is shorter by
 * the jitter that the agent adds, see `AGENT_SPREAD`.
 *
 * @param sinceMs the time since the rejection; 0 if it is unknown or in the future.
 */
export function rejectedRetry(sinceMs: number): RetryRange {
  const grownMs = (Math.max(0, sinceMs) / SOON_MS) * LONGEST_SOON_MS;
  const withSpreadMs = Math.min(LONGEST_MS, Math.max(LONGEST_SOON_MS, grownMs));
  const mostMs = Math.floor(withSpreadMs / (1 + AGENT_SPREAD));
  return { leastMs: Math.floor(mostMs * LEAST_PART), mostMs };
}

/** Choose a time within a range. `random01` is a number from 0 to less than 1. */
export function chooseWithin({ leastMs, mostMs }: RetryRange, random01: number): number {
  return Math.round(leastMs + random01 * (mostMs - leastMs));
}

/**
 * Add the agent's jitter to a given time. The result is never shorter than the given time. `random01` is a number from
 * 0 to less than 1.
 */
export function spreadRetry(leastMs: number, random01: number): number {
  return leastMs + Math.floor(random01 * leastMs * AGENT_SPREAD);
}
