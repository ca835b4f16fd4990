import { describe, expect, it } from "@jest/globals";
import { formatBytes, formatDuration, formatExactDuration, formatPercent, formatTime } from "./units.ts";

describe("formatBytes()", () => {
  it.each([
    [0, "0 B"],
    [1023, "1023 B"],
    [1024, "1.0 KiB"],
    [33_600_000_000, "31.3 GiB"],
    [107_374_182_400, "100 GiB"],
    [1_048_575, "1.0 MiB"],
    [2 ** 60, "1.0 EiB"],
    [-1, "0 B"],
  ])("should write %d bytes", (bytes, text) => {
    expect(formatBytes(bytes)).toBe(text);
  });
});

describe("formatDuration()", () => {
  it.each([
    [-5, "0s"],
    [999, "0s"],
    [59_999, "59s"],
    [60_000, "1m"],
    [3_599_999, "59m"],
    [3_600_000, "1h"],
    [86_399_999, "23h"],
    [86_400_000, "1d"],
  ])("should write %d ms", (ms, text) => {
    expect(formatDuration(ms)).toBe(text);
  });
});

describe("formatExactDuration()", () => {
  it.each([
    [500, "500ms"],
    [15_000, "15s"],
    [90_000, "1m30s"],
    [3_600_000, "1h"],
  ])("should write %d ms", (ms, text) => {
    expect(formatExactDuration(ms)).toBe(text);
  });
});

describe("formatTime()", () => {
  it("should write UTC", () => {
    expect(formatTime(Date.UTC(2026, 7, 6, 12, 3, 4, 567))).toBe("2026-08-06 12:03:04Z");
  });
});

describe("formatPercent()", () => {
  it("should round", () => {
    expect(formatPercent(12.5)).toBe("13%");
  });
});
