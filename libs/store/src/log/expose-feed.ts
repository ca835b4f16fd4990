import { gauge, type MetricsRegistry, onScrape } from "@rollcall/process";
import type { EventFeed } from "./feed.ts";

/** Export metrics about how far this process's followers are behind the log. */
export function exposeFeed(metrics: MetricsRegistry, feed: Pick<EventFeed, "lags">): void {
  const revisions = gauge(metrics, {
    name: "rollcall_feed_lag_revisions",
    help: "Revisions known to be in the event log that a follower in this process has not received.",
    labelNames: ["follower"],
  });
  const seconds = gauge(metrics, {
    name: "rollcall_feed_lag_seconds",
    help: "Time since a follower in this process last had the whole event log; about a second when idle.",
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
