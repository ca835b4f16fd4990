import type { Execution } from "./execution.ts";

/** How fast planning time approaches the store's clock, as a fraction of the time that passes. */
const FOLLOW_RATE = 0.1;
/** The maximum difference that is made up gradually. To make up a larger one would take hours. */
const MOST_FOLLOWED_MS = 600_000;

/** The time used for plans: a monotonic clock plus an offset that approaches the store's clock. */
export interface PlanningTime {
  /** When the store's clock was last read, by the monotonic clock. */
  readonly readAtMs: number;
  readonly aheadMs: number;
}

/**
 * Compare planning time with the store's clock. Planning time approaches the store's clock gradually, so that a clock
 * step changes a running wait by at most a tenth. Null after a step of more than ten minutes, because the planner
 * must start again with the new time.
 *
 * @param before null to start with the store's clock.
 * @param atMs the monotonic time.
 */
export function followClock(before: PlanningTime | null, atMs: number, recordMs: number): PlanningTime | null {
  const aheadMs = recordMs - atMs;
  if (before === null) return { readAtMs: atMs, aheadMs };
  const differenceMs = aheadMs - before.aheadMs;
  if (Math.abs(differenceMs) > MOST_FOLLOWED_MS) return null;
  const mostMs = (atMs - before.readAtMs) * FOLLOW_RATE;
  return { readAtMs: atMs, aheadMs: before.aheadMs + Math.max(-mostMs, Math.min(mostMs, differenceMs)) };
}

/**
 * Correct the times of an execution that a planner loads when it starts. Times in the future were written before the
 * clock was set back, and become the current time. Otherwise waits that are counted from these times would be longer
 * by the step.
 */
export function notAfter(record: Execution, nowMs: number): Execution {
  const { createdAtMs, lostAtMs, endedAtMs } = record;
  const latestMs = Math.max(createdAtMs, lostAtMs ?? 0, endedAtMs ?? 0);
  if (latestMs <= nowMs) return record;
  const earlier = (ms: number | null) => (ms === null ? null : Math.min(ms, nowMs));
  return {
    ...record,
    ...{ createdAtMs: Math.min(createdAtMs, nowMs), lostAtMs: earlier(lostAtMs), endedAtMs: earlier(endedAtMs) },
  };
}
