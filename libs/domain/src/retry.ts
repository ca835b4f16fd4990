/** A time to wait, in milliseconds, to be chosen at random between two bounds. */
export interface RetryRange {
  readonly leastMs: number;
  readonly mostMs: number;
}

/**
 * An agent adds at most this part of a given time to it, so that those that were given the same one do not come
 * together.
 */
const AGENT_SPREAD = 0.25;

/**
 * For so long after its rejection a node is back within 20 s of an approval: a mistyped `reject` is often noticed at
 * once.
 */
const SOON_MS = 600_000;
const LONGEST_SOON_MS = 20_000;
const LONGEST_MS = 120_000;
/** The least time is this part of the longest. */
const LEAST_PART = 0.625;

/**
 * How long a rejected or banned node is told to wait before it asks again: at most 20 s within ten minutes of the
 * rejection, then a thirtieth of the time since it, and never more than two minutes. The bounds leave room for what the
 * agent adds, see `AGENT_SPREAD`.
 *
 * @param sinceMs the time since the rejection; what is not known, or lies in the future, counts as 0.
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

/** A given time with what the agent adds to it: jitter only ever adds. `random01` is a number from 0 to less than 1. */
export function spreadRetry(leastMs: number, random01: number): number {
  return leastMs + Math.floor(random01 * leastMs * AGENT_SPREAD);
}
