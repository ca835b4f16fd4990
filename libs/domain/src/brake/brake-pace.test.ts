import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import { ReleasePace, releaseIntervalMs, releasesPerMinute } from "./brake-pace.ts";

const MINUTE_MS = 60_000;

describe("ReleasePace", () => {
  it("should begin without credit, and let a tenth go in a minute, evenly", () => {
    const pace = new ReleasePace(100, 0);
    const wentAtMs: number[] = [];
    for (let nowMs = 0; nowMs <= 2 * MINUTE_MS; nowMs += 1_000) {
      const count = pace.allowance(nowMs);
      pace.spend(count, nowMs);
      for (let index = 0; index < count; index++) wentAtMs.push(nowMs);
    }
    expect(wentAtMs).toHaveLength(20);
    expect(wentAtMs[0]).toBe(6_000);
    expect(wentAtMs.slice(0, 3)).toEqual([6_000, 12_000, 18_000]);
  });

  it("should let one of a small group go now and then", () => {
    const pace = new ReleasePace(6, 0);
    expect(pace.allowance(99_000)).toBe(0);
    expect(pace.allowance(100_000)).toBe(1);
    pace.spend(1, 100_000);
    expect(pace.allowance(199_000)).toBe(0);
    expect(releasesPerMinute(6)).toBe(1);
  });

  it.each([3, 5, 7, 9, 10, 15, 19, 25, 99, 250])(
    "should go in the long run as releaseIntervalMs() says, in a group of %i",
    (size) => {
      const pace = new ReleasePace(size, 0);
      const runMs = 60 * MINUTE_MS;
      let went = 0;
      for (let nowMs = 1_000; nowMs <= runMs; nowMs += 1_000) {
        const count = pace.allowance(nowMs);
        pace.spend(count, nowMs);
        went += count;
      }
      const told = runMs / releaseIntervalMs(size);
      expect(Math.abs(went - told)).toBeLessThanOrEqual(Math.max(1, told * 0.02));
    },
  );

  it("should save up nothing worth a blow while nothing is pending", () => {
    const pace = new ReleasePace(100, 0);
    for (let nowMs = 0; nowMs <= 10 * MINUTE_MS; nowMs += 1_000) pace.allowance(nowMs);
    expect(pace.allowance(10 * MINUTE_MS + 1_000)).toBe(1);
  });

  it("should never let more than a tenth of the group go in any minute", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 3, max: 20_000 }),
        fc.array(fc.record({ afterMs: fc.integer({ min: 1, max: 20_000 }), wanted: fc.nat(2_000) }), {
          maxLength: 200,
        }),
        (size, looks) => {
          const pace = new ReleasePace(size, 0);
          const went: { atMs: number; count: number }[] = [];
          let nowMs = 0;
          for (const { afterMs, wanted } of looks) {
            nowMs += afterMs;
            const count = Math.min(wanted, pace.allowance(nowMs));
            pace.spend(count, nowMs);
            went.push({ atMs: nowMs, count });
            const total = (sinceMs: number) => went.reduce((sum, it) => (it.atMs > sinceMs ? sum + it.count : sum), 0);
            expect(total(nowMs - MINUTE_MS)).toBeLessThanOrEqual(Math.max(1, size / 10));
            expect(total(-1)).toBeLessThanOrEqual((nowMs / MINUTE_MS) * (size / 10));
          }
        },
      ),
    );
  });
});
