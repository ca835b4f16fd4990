import { setTimeout as pause } from "node:timers/promises";

const POLL_MS = 100;
const PATIENCE_MS = 45_000;

/**
 * Ask again and again until the answer is something other than null, undefined or false, and answer that. A question that fails is asked
 * again too. Rejects after 45 s, or `patienceMs`, with the last answer or error.
 */
export async function eventually<T>(
  what: string,
  ask: () => Promise<T | null | undefined | false> | T | null | undefined | false,
  patienceMs = PATIENCE_MS,
): Promise<T> {
  const untilMs = performance.now() + patienceMs;
  let last: unknown;
  do {
    try {
      const answer = await ask();
      if (answer !== null && answer !== undefined && answer !== false) return answer;
      last = answer;
    } catch (error) {
      last = error;
    }
    await pause(POLL_MS);
  } while (performance.now() < untilMs);
  throw new Error(`waited ${patienceMs} ms for ${what}: ${String(last)}`, { cause: last });
}
