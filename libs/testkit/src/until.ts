import { setTimeout as pause } from "node:timers/promises";

const PATIENCE_MS = 45_000;
const FIRST_PAUSE_MS = 5;
const LONGEST_PAUSE_MS = 100;

type Nothing = null | undefined | false;

/**
 * Poll until the result is not null, undefined or false, and return it. A query that throws is also repeated.
 * Rejects after 45 s, or after `patienceMs`, with the name of the condition and the last result or error.
 */
export async function until<T>(
  what: string,
  ask: () => Promise<T | Nothing> | T | Nothing,
  patienceMs = PATIENCE_MS,
): Promise<T> {
  const endMs = performance.now() + patienceMs;
  let last: unknown;
  let pauseMs = FIRST_PAUSE_MS;
  do {
    try {
      const answer = await ask();
      if (answer !== null && answer !== undefined && answer !== false) return answer;
      last = answer;
    } catch (error) {
      last = error;
    }
    await pause(pauseMs);
    // Poll often at first, for conditions that are nearly met, and then less often, so as not to disturb the code
    // under test.
    pauseMs = Math.min(LONGEST_PAUSE_MS, pauseMs * 1.2);
  } while (performance.now() < endMs);
  throw new Error(`waited ${patienceMs} ms for ${what}: ${String(last)}`, { cause: last });
}
