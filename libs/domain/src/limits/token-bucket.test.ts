import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import { fillBucket, fullBucket, msUntilOne, type TokenBucket, takeOne } from "./token-bucket.ts";

const LIMITS = { perSecond: 10, burst: 3 };

describe("takeOne()", () => {
  it("should give the burst, and then one each time that one has come", () => {
    let bucket: TokenBucket = fullBucket(LIMITS, 0);
    for (let taken = 0; taken < 3; taken += 1) bucket = takeOne(bucket, LIMITS, 0) ?? bucket;
    expect(takeOne(bucket, LIMITS, 0)).toBeNull();
    expect(msUntilOne(bucket, LIMITS, 0)).toBe(100);
    expect(takeOne(bucket, LIMITS, 99)).toBeNull();
    expect(takeOne(bucket, LIMITS, 100)).not.toBeNull();
  });

  it("should fill up to the burst at most, and never because of a clock that was set back", () => {
    const bucket = fullBucket(LIMITS, 1_000);
    expect(fillBucket(bucket, LIMITS, 1_000_000).level).toBe(3);
    const emptied = { level: 0, atMs: 1_000 };
    expect(fillBucket(emptied, LIMITS, 0)).toEqual(emptied);
  });

  it("should never give more in any time than burst and rate allow, nor refuse a caller that waited for the returned time", () => {
    const limits = fc.record({
      perSecond: fc.double({ min: 0.1, max: 10_000, noNaN: true }),
      burst: fc.integer({ min: 1, max: 100 }),
    });
    const steps = fc.array(fc.nat({ max: 2_000 }), { maxLength: 200 });
    fc.assert(
      fc.property(limits, steps, (limit, waits) => {
        let bucket: TokenBucket = fullBucket(limit, 0);
        let nowMs = 0;
        let taken = 0;
        for (const wait of waits) {
          nowMs += wait;
          const waitMs = msUntilOne(bucket, limit, nowMs);
          const next = takeOne(bucket, limit, nowMs);
          expect(next === null).toBe(waitMs > 0);
          if (next === null) expect(takeOne(bucket, limit, nowMs + waitMs)).not.toBeNull();
          else taken += 1;
          bucket = next ?? bucket;
          expect(bucket.level).toBeGreaterThanOrEqual(0);
          expect(bucket.level).toBeLessThanOrEqual(limit.burst);
          expect(taken).toBeLessThanOrEqual(limit.burst + (nowMs * limit.perSecond) / 1000 + 1e-3);
        }
      }),
    );
  });
});
