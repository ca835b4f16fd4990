import { gauge, type MetricsRegistry, onScrape } from "@rollcall/process";
import type { EventFeed } from "./feed.ts";

/** Show in a registry how far what follows the log in this process is behind it. */
export function exposeFeed(metrics: MetricsRegistry, feed: Pick<EventFeed, "lags">): void {
  const revisions = gauge(metrics, {
    name: "rollcall_feed_lag_revisions",
    help: "Revisions of the log that a follower in this process has not received, as far as the process knows.",
    labelNames: ["follower"],
  });
  const seconds = gauge(metrics, {
    name: "rollcall_feed_lag_seconds",
    help: "Time since a follower in this process was last known to have the whole log; about a second when idle.",
    labelNames: ["follower"],
  });
  onScrape(metrics, () => {
    revisions.reset();
    seconds.reset();
    const furthest = new Map<string, { readonly revisions: number; readonly sinceEndMs: number }>();
    for (const { name, ...lag } of feed.lags()) {
      const other = furthest.get(name) ?? { revisions: 0, sinceEndMs: 0 };
      furthest.set(name, {
        revisions: Math.max(other.revisions, lag.revisions),
        sinceEndMs: Math.max(other.sinceEndMs, lag.sinceEndMs),
      });
    }
    for (const [follower, lag] of furthest) {
      revisions.set({ follower }, lag.revisions);
      seconds.set({ follower }, lag.sinceEndMs / 1_000);
    }
  });
}
