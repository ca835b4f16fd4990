// What tests need to move time or to wait, without the record that the rest of the testkit brings along.
export { eventually } from "./eventually.ts";
export { ManualClock, settle } from "./manual-clock.ts";
export { until } from "./until.ts";
