import { describe, expect, it } from "@jest/globals";
import { CONNECTING, nextLink, retryDelayMs, stalest } from "./link.ts";

describe("nextLink()", () => {
  it("should be stale since the first failure, however often it retries", () => {
    const live = nextLink(CONNECTING, { kind: "message", isBehind: false });
    expect(live).toEqual({ state: "live" });
    expect(nextLink(live, { kind: "message", isBehind: false })).toBe(live);
    const stale = nextLink(live, { kind: "ended", nowMs: 5, why: "gone" });
    expect(stale).toEqual({ state: "stale", sinceMs: 5, why: "gone" });
    expect(nextLink(stale, { kind: "ended", nowMs: 99, why: "still gone" })).toBe(stale);
    expect(nextLink(stale, { kind: "message", isBehind: false })).toEqual({ state: "live" });
  });

  it("should not be live before all missed changes have arrived", () => {
    expect(nextLink(CONNECTING, { kind: "message", isBehind: true })).toBe(CONNECTING);
    const stale = nextLink({ state: "live" }, { kind: "ended", nowMs: 5, why: "not looked at" });
    expect(nextLink(stale, { kind: "message", isBehind: true })).toBe(stale);
    expect(nextLink(stale, { kind: "message", isBehind: false })).toEqual({ state: "live" });
  });
});

describe("stalest()", () => {
  it("should be the one that has been stale longest, or none", () => {
    const early = { state: "stale", sinceMs: 5, why: "gone" } as const;
    const late = { ...early, sinceMs: 9 };
    expect(stalest([{ state: "live" }, late, CONNECTING, early])).toBe(early);
    expect(stalest([{ state: "live" }, CONNECTING])).toBeNull();
  });
});

describe("retryDelayMs()", () => {
  it("should grow up to ten seconds, shortened at random by up to half", () => {
    expect([1, 2, 3, 30].map((attempt) => retryDelayMs(attempt, 0))).toEqual([250, 500, 1000, 10_000]);
    expect(retryDelayMs(30, 1)).toBe(5000);
  });
});
