import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import { chooseWithin, rejectedRetry, spreadRetry } from "./retry.ts";

const MINUTE = 60_000;

describe("rejectedRetry()", () => {
  it.each([
    ["at once", 0, 10_000, 16_000],
    ["an unknown time", Number.NEGATIVE_INFINITY, 10_000, 16_000],
    ["just before ten minutes", 10 * MINUTE - 1, 10_000, 16_000],
    ["at ten minutes", 10 * MINUTE, 10_000, 16_000],
    ["at half an hour", 30 * MINUTE, 30_000, 48_000],
    ["at an hour", 60 * MINUTE, 60_000, 96_000],
    ["after a year", 525_600 * MINUTE, 60_000, 96_000],
  ])("should answer a range %s", (_, sinceMs, leastMs, mostMs) => {
    expect(rejectedRetry(sinceMs)).toEqual({ leastMs, mostMs });
  });

  it("should have a node back within 20 s for ten minutes, and within two minutes ever after", () => {
    const random01 = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });
    fc.assert(
      fc.property(fc.nat(10 * 86_400_000), random01, random01, (sinceMs, server, agent) => {
        const delayMs = spreadRetry(chooseWithin(rejectedRetry(sinceMs), server), agent);
        expect(delayMs).toBeGreaterThanOrEqual(10_000);
        expect(delayMs).toBeLessThanOrEqual(sinceMs <= 10 * MINUTE ? 20_000 : 120_000);
      }),
    );
  });

  it("should never ask sooner as time goes by", () => {
    fc.assert(
      fc.property(fc.nat(86_400_000), fc.nat(86_400_000), (sinceMs, laterMs) => {
        const [sooner, later] = [rejectedRetry(sinceMs), rejectedRetry(sinceMs + laterMs)];
        expect(later.leastMs).toBeGreaterThanOrEqual(sooner.leastMs);
        expect(later.mostMs).toBeGreaterThanOrEqual(sooner.mostMs);
      }),
    );
  });
});
