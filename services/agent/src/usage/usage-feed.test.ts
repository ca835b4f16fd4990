import { describe, expect, it } from "@jest/globals";
import { SMALL_USAGE } from "../testing/agent-harness.ts";
import { createUsageFeed } from "./usage-feed.ts";

describe("createUsageFeed()", () => {
  it("should keep measurements apart", () => {
    let clockMs = 0;
    let refreshes = 0;
    const sampler = {
      refresh: async () => {
        refreshes += 1;
      },
      latest: () => SMALL_USAGE,
    };
    const feed = createUsageFeed(sampler, () => clockMs, 30_000);
    feed.measure();
    clockMs = 29_999;
    feed.measure();
    expect(refreshes).toBe(1);
    clockMs = 30_000;
    feed.measure();
    expect(refreshes).toBe(2);
  });

  it.each([
    [15_000, 0, 45_000],
    [2_000, 0, 30_000],
    [15_000, 60_000, 180_000],
  ])("should drop readings that missed three beats: every %d ms", (intervalMs, gapMs, maxAgeMs) => {
    let asked = 0;
    const sampler = {
      refresh: async () => {},
      latest: (ms: number) => {
        asked = ms;
        return SMALL_USAGE;
      },
    };
    createUsageFeed(sampler, () => 0, gapMs).latest(intervalMs);
    expect(asked).toBe(maxAgeMs);
  });
});
