import { gauge, onScrape } from "@rollcall/process";
import { Limiter } from "@rollcall/rpc";
import type { RegistryProcess } from "../registry-process.ts";
import { EventHub } from "./event-hub.ts";
import { LogWake } from "./log-wake.ts";
import { NodeHub } from "./node-hub.ts";
import { DEFAULT_WATCH_LIMITS, type WatchLimits } from "./watch-limits.ts";

/** The objects that all watches of a process share. */
export interface Watches {
  readonly limits: WatchLimits;
  readonly wake: LogWake;
  readonly events: EventHub;
  readonly nodes: NodeHub;
  /** Slots for snapshots that are being read. */
  readonly snapshots: Limiter;
  /**
   * Stop following the feed. The caller must close the port first, because that ends the streams.
   */
  close(): Promise<void>;
}

/** Create the objects that watches share. Reading starts with the first watch. */
export function createWatches({
  store,
  feed,
  clock,
  log,
  metrics,
  watchLimits = {},
}: Pick<RegistryProcess, "store" | "feed" | "clock" | "log" | "metrics" | "watchLimits">): Watches {
  const limits = { ...DEFAULT_WATCH_LIMITS, ...watchLimits };
  const wake = new LogWake({ feed, clock, limits });
  const events = new EventHub({ store, feed, wake, clock, limits });
  const nodes = new NodeHub({ store, clock, log, limits, wake });
  const watchers = gauge(metrics, {
    name: "rollcall_watchers",
    help: "Number of open watches, by kind.",
    labelNames: ["of"],
  });
  onScrape(metrics, () => {
    watchers.set({ of: "events" }, events.watchers);
    watchers.set({ of: "nodes" }, nodes.watchers);
  });
  return {
    limits,
    wake,
    events,
    nodes,
    snapshots: new Limiter(limits.snapshots),
    close: async () => {
      await nodes.close();
      events.close();
      wake.close();
    },
  };
}
