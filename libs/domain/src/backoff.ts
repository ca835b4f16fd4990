/**
 * How long to wait before the next attempt, in whole milliseconds: anything from nothing to a limit that doubles with
 * each attempt. Full jitter spreads the callers that one outage lined up.
 *
 * @param options `attempt` counts from 0 for the wait after the first failure; the limit is `baseMs` doubled `attempt`
 *   times and never more than `maxMs`; `random01` is a random number from 0 to less than 1.
 */
export function fullJitter(options: {
  readonly attempt: number;
  readonly baseMs: number;
  readonly maxMs: number;
  readonly random01: number;
}): number {
  const { attempt, baseMs, maxMs, random01 } = options;
  return Math.floor(random01 * Math.min(maxMs, baseMs * 2 ** attempt));
}
