import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import { backoffMs, fullJitter, halfJitter } from "./backoff.ts";

describe("fullJitter()", () => {
  it.each([
    [0, 500],
    [1, 1000],
    [4, 8000],
    [6, 30_000],
    [2000, 30_000],
  ])("should wait for attempt %d less than %d ms", (attempt, limitMs) => {
    const options = { attempt, baseMs: 500, maxMs: 30_000 };

    expect(fullJitter({ ...options, random01: 0 })).toBe(0);
    expect(fullJitter({ ...options, random01: 0.5 })).toBe(limitMs / 2);
    expect(fullJitter({ ...options, random01: 1 - Number.EPSILON })).toBe(limitMs - 1);
  });

  it("should stay within its limit, in whole milliseconds", () => {
    fc.assert(
      fc.property(
        fc.nat({ max: 5000 }),
        fc.integer({ min: 1, max: 10_000 }),
        fc.integer({ min: 1, max: 1_000_000 }),
        fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
        (attempt, baseMs, maxMs, random01) => {
          const waitMs = fullJitter({ attempt, baseMs, maxMs, random01 });
          expect(Number.isSafeInteger(waitMs)).toBe(true);
          expect(waitMs).toBeGreaterThanOrEqual(0);
          expect(waitMs).toBeLessThan(maxMs);
        },
      ),
    );
  });
});

describe("halfJitter()", () => {
  it.each([
    [0, 0, 125],
    [0, 1 - Number.EPSILON, 250],
    [3, 0.5, 1_500],
    [60, 0, 15_000],
  ])("should wait for half of the limit at least: attempt %d, %d", (attempt, random01, expected) => {
    expect(halfJitter({ attempt, baseMs: 250, maxMs: 30_000, random01 })).toBe(expected);
    expect(backoffMs({ attempt, baseMs: 250, maxMs: 30_000 })).toBeGreaterThanOrEqual(expected);
  });
});
