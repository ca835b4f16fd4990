// The leader without a store: simulations run it on records of their own.
export { Leader } from "./leader.ts";
export type { LeaderMetrics } from "./leader-metrics.ts";
export type { LeaderOptions } from "./leader-options.ts";
export type { LeaderRecord } from "./leader-record.ts";
