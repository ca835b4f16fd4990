import { counter, gauge, type MetricsRegistry, onScrape } from "@rollcall/process";
import type { Store } from "./store.ts";

/** Export metrics about the use of a store's connections. */
export function exposePools(metrics: MetricsRegistry, store: Pick<Store, "use">): void {
  const connections = gauge(metrics, {
    name: "rollcall_database_connections",
    help: "Connections to Postgres by pool (calls or reserved) and state (in_use or idle).",
    labelNames: ["pool", "state"],
  });
  const most = gauge(metrics, {
    name: "rollcall_database_connections_limit",
    help: "Maximum number of connections to Postgres, by pool.",
    labelNames: ["pool"],
  });
  const waiting = gauge(metrics, {
    name: "rollcall_database_waiting",
    help: "Queries and transactions waiting for a connection, by pool.",
    labelNames: ["pool"],
  });
  const turnedAway = counter(metrics, {
    name: "rollcall_database_turned_away_total",
    help: "Refused queries and transactions, by pool and cause: full (too many waited) or late (waited too long).",
    labelNames: ["pool", "cause"],
  });
  onScrape(metrics, () => {
    // Set the counter to the totals, which the pools keep.
    turnedAway.reset();
    for (const use of store.use()) {
      const pool = use.lane;
      connections.set({ pool, state: "in_use" }, use.inUse);
      connections.set({ pool, state: "idle" }, use.idle);
      most.set({ pool }, use.size);
      waiting.set({ pool }, use.waiting);
      turnedAway.inc({ pool, cause: "full" }, use.turnedAway.full);
      turnedAway.inc({ pool, cause: "late" }, use.turnedAway.late);
    }
  });
}
