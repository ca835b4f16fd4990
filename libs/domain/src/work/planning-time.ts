import type { ExecutionRecord } from "./execution.ts";

/** By how much planning time comes closer to the record's clock, relative to the time that passes. */
const FOLLOW_RATE = 0.1;
/** A clock that differs by more has been wrong for long: following it at that rate would take hours. */
const MOST_FOLLOWED_MS = 600_000;

/** The time that plans are made at: a monotonic clock, and how far the record's clock is ahead of it. */
export interface PlanningTime {
  /** When the record's clock was read last, by the monotonic clock. */
  readonly readAtMs: number;
  readonly aheadMs: number;
}

/**
 * Compare planning time with the record's clock. A clock that steps changes no wait that is under way by more than a
 * tenth: planning time approaches the new time gradually. Null after a step of more than ten minutes: the planner has
 * to begin again with times of the new clock.
 *
 * @param before null to begin with the record's clock.
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
 * An execution as a planner takes it in that begins at a time. Times after it were written before the clock was set
 * back: they count as the present, since waits that begin with them would be longer by the step.
 */
export function notAfter(record: ExecutionRecord, nowMs: number): ExecutionRecord {
  const { createdAtMs, lostAtMs, endedAtMs } = record;
  const latestMs = Math.max(createdAtMs, lostAtMs ?? 0, endedAtMs ?? 0);
  if (latestMs <= nowMs) return record;
  const earlier = (ms: number | null) => (ms === null ? null : Math.min(ms, nowMs));
  return {
    ...record,
    ...{ createdAtMs: Math.min(createdAtMs, nowMs), lostAtMs: earlier(lostAtMs), endedAtMs: earlier(endedAtMs) },
  };
}
