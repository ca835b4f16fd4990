// Helpers for tests that advance time or wait. Importing them does not load the store, which the
// rest of the testkit needs.

export { faultsOverIntervals, type TimedSubject } from "./checks/many-intervals.ts";
export { eventually } from "./eventually.ts";
export { ManualClock, settle } from "./manual-clock.ts";
export { until } from "./until.ts";
