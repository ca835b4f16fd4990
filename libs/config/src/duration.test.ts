import { describe, expect, it } from "@jest/globals";
import { formatDuration, parseDuration } from "./duration.ts";

describe("parseDuration()", () => {
  it.each([
    ["15s", 15_000],
    ["1m", 60_000],
    ["1h30m", 5_400_000],
    ["250ms", 250],
    ["1.5s", 1_500],
    ["2d", 172_800_000],
    ["1m30s500ms", 90_500],
    ["15", 15_000],
    ["0.25", 250],
    ["0", 0],
    [" 15s ", 15_000],
    ["", null],
    ["s", null],
    ["15 s", 15_000],
    ["15 seconds", 15_000],
    ["1 minute", 60_000],
    ["1 Minute", 60_000],
    ["30 sec", 30_000],
    ["1 hour 30 minutes", 5_400_000],
    ["2 days", 172_800_000],
    ["250 milliseconds", 250],
    ["1m0s", 60_000],
    ["5 M", null],
    ["5 moments", null],
    ["minute", null],
    [`1s${" ".repeat(200)}x`, null],
    ["15x", null],
    ["-15s", null],
    ["1h 30m", 5_400_000],
    ["1e3", null],
    ["15S", null],
  ])("should read %j as %j ms", (text, ms) => {
    expect(parseDuration(text)).toBe(ms);
  });
});

describe("formatDuration()", () => {
  it.each([0, 1, 250, 1_000, 90_500, 5_400_000, 86_400_000, 90_061_001])(
    "should write %i ms so that it is read back",
    (ms) => {
      expect(parseDuration(formatDuration(ms))).toBe(ms);
    },
  );

  it("should use the largest units", () => {
    expect(formatDuration(90_061_001)).toBe("1d1h1m1s1ms");
    expect(formatDuration(0)).toBe("0s");
  });
});
