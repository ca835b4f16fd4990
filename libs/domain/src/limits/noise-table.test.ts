import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import { NoiseTable } from "./noise-table.ts";

const LIMITS = {
  firstLines: 2,
  linesAnInterval: 5,
  intervalMs: 60_000,
  maxKeys: 4,
  maxSummaries: 2,
};

function written(table: NoiseTable, source: string, what: string, times: number): number {
  return Array.from({ length: times }, () => table.note(source, what, 0)).filter(Boolean).length;
}

describe("NoiseTable", () => {
  it("should write the first lines of each source about each thing, and count the rest", () => {
    const table = new NoiseTable(LIMITS);
    expect(written(table, "a", "x", 10)).toBe(2);
    expect(written(table, "a", "y", 1)).toBe(1);
    expect(written(table, "b", "x", 2)).toBe(2);
    expect(table.summarise(60_000)).toEqual([{ key: { source: "a", what: "x" }, leftOut: 8 }]);
  });

  it("should count what continues, and write lines again after a silent interval", () => {
    const table = new NoiseTable(LIMITS);
    written(table, "a", "x", 10);
    table.summarise(60_000);
    expect(written(table, "a", "x", 10)).toBe(0);
    expect(table.summarise(120_000)).toEqual([{ key: { source: "a", what: "x" }, leftOut: 10 }]);
    expect(table.summarise(180_000)).toEqual([]);
    expect(table.size).toBe(0);
    expect(written(table, "a", "x", 10)).toBe(2);
  });

  it("should limit the lines of an interval, and sum up the rest", () => {
    const table = new NoiseTable(LIMITS);
    const lines = ["a", "b", "c", "d", "e", "f"].map((source) => written(table, source, "x", 4));
    expect(lines).toEqual([2, 2, 1, 0, 0, 0]);
    expect(table.size).toBe(4);
    expect(table.summarise(60_000)).toEqual([
      { key: { source: "d", what: "x" }, leftOut: 4 },
      { key: { source: "c", what: "x" }, leftOut: 3 },
      { key: null, leftOut: 2 + 2 + 4 + 4 },
    ]);
  });

  it("should ask for a summary an interval after the first line, and for none when all is silent", () => {
    const table = new NoiseTable(LIMITS);
    expect(table.summaryDueMs()).toBeNull();
    table.note("a", "x", 1_000);
    table.note("a", "x", 5_000);
    expect(table.summaryDueMs()).toBe(61_000);
    table.summarise(62_000);
    expect(table.summaryDueMs()).toBe(122_000);
    table.summarise(122_000);
    expect(table.summaryDueMs()).toBeNull();
  });

  it("should count everything, within its limits, for any input", () => {
    const step = fc.oneof(
      fc.record({ source: fc.constantFrom(..."abcdefgh"), what: fc.constantFrom(..."xyz") }),
      fc.constant("summarise" as const),
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 300 }), (steps) => {
        const table = new NoiseTable(LIMITS);
        let notes = 0;
        let accounted = 0;
        let lines = 0;
        const summarise = () => {
          const summaries = table.summarise(0);
          expect(summaries.length).toBeLessThanOrEqual(LIMITS.maxSummaries + 1);
          for (const { leftOut } of summaries) accounted += leftOut;
          lines = 0;
        };
        for (const it of steps) {
          if (it === "summarise") {
            summarise();
            continue;
          }
          notes += 1;
          if (!table.note(it.source, it.what, 0)) continue;
          accounted += 1;
          lines += 1;
          expect(lines).toBeLessThanOrEqual(LIMITS.linesAnInterval);
          expect(table.size).toBeLessThanOrEqual(LIMITS.maxKeys);
        }
        summarise();
        expect(accounted).toBe(notes);
      }),
    );
  });
});
