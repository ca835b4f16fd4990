import type { MachineUsage } from "./machine-usage.ts";
import type { UsageSampler } from "./usage-sampler.ts";

/** What a heartbeat needs of the machine's usage. */
export interface UsageFeed {
  /** Begin to measure in the background. */
  measure(): void;
  /** The last readings, for a beat every `intervalMs`. Never waits. */
  latest(intervalMs: number): MachineUsage;
}

/** A reading that has missed this many beats is not sent any more. */
const OLDEST_IN_BEATS = 3;

/** Beats may be seconds apart while the node is watched; a slow tool is given this long all the same. */
const LEAST_MAX_AGE_MS = 30_000;

/** Create the feed of a sampler. Measurements are at least `leastGapMs` apart, however often they are asked for. */
export function createUsageFeed(sampler: UsageSampler, nowMs: () => number, leastGapMs: number): UsageFeed {
  let measuredAtMs = Number.NEGATIVE_INFINITY;
  return {
    measure: () => {
      if (nowMs() - measuredAtMs < leastGapMs) return;
      measuredAtMs = nowMs();
      // Never rejects, and is not awaited: the next beat takes what there is.
      void sampler.refresh();
    },
    latest: (intervalMs) =>
      sampler.latest(Math.max(LEAST_MAX_AGE_MS, OLDEST_IN_BEATS * Math.max(intervalMs, leastGapMs))),
  };
}
