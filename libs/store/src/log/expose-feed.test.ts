import { describe, expect, it } from "@jest/globals";
import { createMetrics, renderMetrics } from "@rollcall/process";
import { exposeFeed } from "./expose-feed.ts";
import type { FollowerLag } from "./feed.ts";

describe("exposeFeed()", () => {
  it("should show of each name the follower that is furthest behind, and forget those that left", async () => {
    const metrics = createMetrics({ defaults: false });
    let lags: readonly FollowerLag[] = [
      { name: "health", revisions: 0, sinceEndMs: 500 },
      { name: "job_watches", revisions: 3, sinceEndMs: 100 },
      { name: "job_watches", revisions: 1, sinceEndMs: 2_500 },
    ];
    exposeFeed(metrics, { lags: () => lags });
    const text = await renderMetrics(metrics);
    expect(text).toContain('rollcall_feed_lag_seconds{follower="health"} 0.5');
    expect(text).toContain('rollcall_feed_lag_revisions{follower="job_watches"} 3');
    expect(text).toContain('rollcall_feed_lag_seconds{follower="job_watches"} 2.5');
    lags = [];
    expect(await renderMetrics(metrics)).not.toContain("follower=");
  });
});
