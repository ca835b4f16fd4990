import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import { BucketTable } from "./bucket-table.ts";

const LIMITS = { perSecond: 1, burst: 2 };

describe("BucketTable", () => {
  it("should keep keys apart", () => {
    const table = new BucketTable(LIMITS, 10);
    expect([table.take("a", 0), table.take("a", 0), table.take("a", 0)]).toEqual([true, true, false]);
    expect(table.msUntilOne("a", 0)).toBe(1_000);
    expect(table.msUntilOne("b", 0)).toBe(0);
    table.giveBack("a");
    expect(table.take("a", 0)).toBe(true);
  });

  it("should forget the key that was used longest ago, and never hold more than it may", () => {
    const table = new BucketTable(LIMITS, 2);
    table.take("a", 0);
    table.take("a", 0);
    table.take("b", 0);
    // Refuse a call. It still counts as use, so a client that keeps calling is not forgotten.
    table.take("a", 0);
    table.take("c", 0);
    expect(table.take("a", 0)).toBe(false);
    fc.assert(
      fc.property(fc.array(fc.string(), { maxLength: 100 }), fc.integer({ min: 1, max: 5 }), (keys, max) => {
        const bounded = new BucketTable(LIMITS, max);
        for (const key of keys) {
          bounded.take(key, 0);
          expect(bounded.size).toBeLessThanOrEqual(max);
        }
      }),
    );
  });
});
