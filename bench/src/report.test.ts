import { describe, expect, it } from "@jest/globals";
import { formatTable, percentile, percentileOfCounts } from "./report.ts";

describe("formatTable()", () => {
  it("should show each figure with its bound and the ratio", () => {
    const table = formatTable("title", [
      {
        figure: "rate",
        measured: 21_000,
        unit: "/s",
        against: "bare",
        compared: 28_000,
        target: "0.7",
      },
      { figure: "memory", measured: 45.25, unit: "KiB", against: "bare", compared: 0, target: "" },
    ]);
    expect(table.split("\n")).toEqual([
      "title",
      "figure  measured   against             ratio  target",
      "rate    21,000 /s  bare     28,000 /s  0.75   0.7",
      "memory  45.3 KiB   bare     0 KiB      -",
    ]);
  });
});

describe("percentile()", () => {
  it("should return the median and a high percentile, and 0 without samples", () => {
    const samples = Float64Array.from({ length: 100 }, (_, index) => 100 - index);
    expect(percentile(samples, 0.5)).toBe(51);
    expect(percentile(samples, 0.99)).toBe(100);
    expect(percentile(new Float64Array(), 0.5)).toBe(0);
  });
});

describe("percentileOfCounts()", () => {
  it("should return the median and a high percentile, and 0 without samples", () => {
    expect(percentileOfCounts([0, 50, 0, 49, 1], 0.5)).toBe(3);
    expect(percentileOfCounts([0, 51, 0, 48, 1], 0.5)).toBe(1);
    expect(percentileOfCounts([0, 50, 0, 49, 1], 0.99)).toBe(4);
    expect(percentileOfCounts([0, 0], 0.5)).toBe(0);
  });
});
