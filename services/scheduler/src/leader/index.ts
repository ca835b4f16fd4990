// The leader without the database. Simulations run it on simulated stores.
export { Leader } from "./leader.ts";
export type { LeaderMetrics } from "./leader-metrics.ts";
export type { LeaderOptions } from "./leader-options.ts";
export type { LeaderStore } from "./leader-store.ts";
