import { counter, gauge, type MetricsRegistry, onScrape } from "@rollcall/process";
import type { Store } from "./store.ts";

/** Show in a registry how the connections of a store are used. */
export function exposePools(metrics: MetricsRegistry, store: Pick<Store, "use">): void {
  const connections = gauge(metrics, {
    name: "rollcall_database_connections",
    help: "Connections to Postgres by pool: calls or reserved; and by state: in_use or idle.",
    labelNames: ["pool", "state"],
  });
  const most = gauge(metrics, {
    name: "rollcall_database_connections_limit",
    help: "Connections to Postgres that a pool may have.",
    labelNames: ["pool"],
  });
  const waiting = gauge(metrics, {
    name: "rollcall_database_waiting",
    help: "Queries and transactions that wait for a connection, by pool.",
    labelNames: ["pool"],
  });
  const turnedAway = counter(metrics, {
    name: "rollcall_database_turned_away_total",
    help: "Queries and transactions that got no connection, by pool and cause: full, because too many waited, or late.",
    labelNames: ["pool", "cause"],
  });
  onScrape(metrics, () => {
    // The pools count by themselves.
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
