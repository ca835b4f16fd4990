import { setTimeout as pause } from "node:timers/promises";

const PATIENCE_MS = 45_000;
const FIRST_PAUSE_MS = 5;
const LONGEST_PAUSE_MS = 100;

type Nothing = null | undefined | false;

/**
 * Ask again and again until the answer is something other than null, undefined or false, and answer that. A question
 * that fails is asked again too. Rejects after 45 s, or `patienceMs`, naming what was waited for, with the last answer
 * or error.
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
    // Soon at first, for what is nearly there; then seldom enough not to be in the way of what is waited for.
    pauseMs = Math.min(LONGEST_PAUSE_MS, pauseMs * 1.2);
  } while (performance.now() < endMs);
  throw new Error(`waited ${patienceMs} ms for ${what}: ${String(last)}`, { cause: last });
}
