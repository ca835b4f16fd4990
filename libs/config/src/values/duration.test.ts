import { describe, expect, it } from "@jest/globals";
import { formatDuration, readDuration } from "./duration.ts";

describe("readDuration()", () => {
  it.each([
    ["15s", 15_000],
    ["1m", 60_000],
    ["1h30m", 5_400_000],
    ["250ms", 250],
    ["1.5s", 1_500],
    [".5s", 500],
    ["1.s", 1_000],
    ["+15s", 15_000],
    ["1m30s500ms", 90_500],
    ["1h0m0s", 3_600_000],
    ["1s1s", 2_000],
    ["1000us", 1],
    ["1500µs", 2],
    ["2000000ns", 2],
    ["2d", 172_800_000],
    [" 15s ", 15_000],
    ["15 s", 15_000],
    ["15 seconds", 15_000],
    ["1 minute", 60_000],
    ["1 Minute", 60_000],
    ["30 sec", 30_000],
    ["1 hour 30 minutes", 5_400_000],
    ["2 days", 172_800_000],
    ["250 milliseconds", 250],
    ["1h 30m", 5_400_000],
    ["0s", 0],
  ])("should read %j as %i ms", (text, ms) => {
    expect(readDuration(text)).toEqual({ ok: true, ms, hasUnit: true });
  });

  it.each([
    ["15", 15_000],
    ["0.25", 250],
    ["0", 0],
  ])("should read %j, without a unit, as seconds", (text, ms) => {
    expect(readDuration(text)).toEqual({ ok: true, ms, hasUnit: false });
  });

  it.each([
    ["-15s", "is negative"],
    ["999us", "is shorter than a millisecond"],
    ["0.0001", "is shorter than a millisecond"],
    ["9999999d", "is longer than 10,000 years"],
    ["15S", "the units are"],
    ["5 M", "the units are"],
    ["5 moments", "the units are"],
    ["15x", "the units are"],
    ["1w", "the units are"],
    ["", "is not a duration"],
    ["s", "is not a duration"],
    ["minute", "is not a duration"],
    ["-15", "is not a duration"],
    ["1e3", "is not a duration"],
    ["1:30", "is not a duration"],
    ["PT15S", "is not a duration"],
    ["1,5s", "is not a duration"],
    [`1s${" ".repeat(200)}x`, "is not a duration"],
  ])("should refuse %j", (text, problem) => {
    expect(readDuration(text)).toEqual({ ok: false, problem: expect.stringContaining(problem) });
  });
});

describe("formatDuration()", () => {
  it.each([0, 1, 250, 1_000, 90_500, 5_400_000, 86_400_000, 90_061_001])(
    "should write %i ms so that it is read back",
    (ms) => {
      expect(readDuration(formatDuration(ms))).toMatchObject({ ms });
    },
  );

  it("should use the largest units", () => {
    expect(formatDuration(90_061_001)).toBe("1d1h1m1s1ms");
    expect(formatDuration(0)).toBe("0s");
  });
});
