import type { Clock } from "@rollcall/process";

/** A rest is so many times as long as the run before it: runs take a fifth of the time at most. */
const REST_FACTOR = 4;
/** A run that waited for something else does not make callers wait for long. */
const LONGEST_REST_MS = 200;

/**
 * Let callers share what is costly: one run at a time, with a rest after each, and those who ask meanwhile get the
 * outcome of the next run, which sees all that had happened when they asked.
 */
export function shareRuns<T>(run: () => Promise<T>, clock: Clock): () => Promise<T> {
  const { signal } = new AbortController();
  let busy: Promise<void> | null = null;
  let next: Promise<T> | null = null;
  const begin = (): Promise<T> => {
    const startMs = clock.nowMs();
    const begun = run();
    const rest = () => clock.sleep(Math.min(REST_FACTOR * (clock.nowMs() - startMs), LONGEST_REST_MS), signal);
    // A failure goes to the callers that asked for that run.
    const rested = begun.then(rest, rest).then(() => {
      if (busy === rested) busy = null;
    });
    busy = rested;
    return begun;
  };
  return () => {
    if (next !== null) return next;
    if (busy === null) return begin();
    next = busy.then(() => {
      next = null;
      return begin();
    });
    return next;
  };
}
