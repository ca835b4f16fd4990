import { describe, expect, it } from "@jest/globals";
import { exactTime, formatDuration, parseDuration, relativeTime, relativeTimeLastsMs } from "./time-words.ts";

describe("relativeTime()", () => {
  it.each([
    [0, "now"],
    [999, "now"],
    [1000, "1s ago"],
    [59_999, "59s ago"],
    [60_000, "1m ago"],
    [3_599_999, "59m ago"],
    [3_600_000, "1h ago"],
    [86_400_000, "1d ago"],
    [-1999, "now"],
    [-2000, "in 2s"],
    [-3_600_000, "in 1h"],
  ])("should say of %d ms in the past %j", (pastMs, expected) => {
    expect(relativeTime(1e12 - pastMs, 1e12)).toBe(expected);
  });

  it("should be refreshed less often the further away the time is", () => {
    expect([10_000, 120_000, 7_200_000].map((ms) => relativeTimeLastsMs(0, ms))).toEqual([1000, 15_000, 300_000]);
  });
});

describe("exactTime()", () => {
  it("should name the same moment as the original time", () => {
    const text = exactTime(Date.UTC(2026, 2, 1, 13, 5, 9));
    expect(Date.parse(text.replace(" ", "T").replace(" ", ""))).toBe(Date.UTC(2026, 2, 1, 13, 5, 9));
  });
});

describe("parseDuration()", () => {
  it.each([
    ["90s", 90_000],
    ["1h30m", 5_400_000],
    ["500ms", 500],
    ["0s", 0],
    ["7d", 604_800_000],
  ])("should read %j, and formatDuration() write it", (text, ms) => {
    expect(parseDuration(text)).toBe(ms);
    expect(parseDuration(formatDuration(ms))).toBe(ms);
  });

  it.each(["", "5", "soon", "5 M", "-5s"])("should refuse %j", (text) => {
    expect(parseDuration(text)).toBeNull();
  });
});
