import type { MachineUsage } from "./machine-usage.ts";
import type { UsageSampler } from "./usage-sampler.ts";

/** The usage of the machine, in the form that heartbeats use. */
export interface UsageFeed {
  /** Start measuring in the background. */
  measure(): void;
  /** The last readings, for a beat every `intervalMs`. Never waits. */
  latest(intervalMs: number): MachineUsage;
}

/** The number of beats after which a reading is too old to be sent. */
const OLDEST_IN_BEATS = 3;

/**
 * The minimum age at which a reading becomes too old. While someone watches the node, beats can be closer together
 * than a slow tool's readings.
 */
const LEAST_MAX_AGE_MS = 30_000;

/** Create the feed of a sampler. Measurements are at least `leastGapMs` apart, however many are requested. */
export function createUsageFeed(sampler: UsageSampler, nowMs: () => number, leastGapMs: number): UsageFeed {
  let measuredAtMs = Number.NEGATIVE_INFINITY;
  return {
    measure: () => {
      if (nowMs() - measuredAtMs < leastGapMs) return;
      measuredAtMs = nowMs();
      // refresh() never rejects. Do not wait for it, because the next beat uses the readings that are available.
      void sampler.refresh();
    },
    latest: (intervalMs) =>
      sampler.latest(Math.max(LEAST_MAX_AGE_MS, OLDEST_IN_BEATS * Math.max(intervalMs, leastGapMs))),
  };
}
