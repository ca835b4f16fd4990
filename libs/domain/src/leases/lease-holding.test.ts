import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import { LEASE_TIMING, LeaseHolding } from "./lease-holding.ts";

const EXPIRY_MS = 10_000;
const create = () => new LeaseHolding({ expiryMs: EXPIRY_MS });

/** Create a lease that was requested at 1 s and has been acquired. */
function held() {
  const holding = create();
  holding.proved(1_000, 1_500);
  return holding;
}

describe("LEASE_TIMING", () => {
  it("should leave time for several renewals", () => {
    expect(LEASE_TIMING).toEqual({ renewEveryMs: 2_000, expiryMs: 10_000 });
  });
});

describe("LeaseHolding.proved()", () => {
  it("should hold nothing before", () => {
    const holding = create();
    expect([holding.isHeld, holding.doubtAtMs, holding.check(99_999), holding.lost()]).toEqual([
      false,
      null,
      null,
      null,
    ]);
  });

  it("should count from the question, not from the answer", () => {
    const holding = create();
    expect(holding.proved(1_000, 5_000)).toBe("held");
    expect([holding.isHeld, holding.doubtAtMs]).toEqual([true, 11_000]);
  });

  it.each([
    [9_999, "held"],
    [10_000, null],
    [10_001, null],
  ])("should take an answer after %d ms as %j", (tookMs, begun) => {
    const holding = create();
    expect(holding.proved(500, 500 + tookMs)).toBe(begun);
    expect(holding.isHeld).toBe(begun !== null);
  });

  it("should not count an answer that came too late for the last proof", () => {
    const holding = held();
    expect(holding.proved(2_000, 12_000)).toBeNull();
    expect(holding.doubtAtMs).toBe(11_000);
  });

  it("should extend a held lease without reporting it held again", () => {
    const holding = held();
    expect(holding.proved(3_000, 3_001)).toBeNull();
    expect([holding.isHeld, holding.doubtAtMs]).toEqual([true, 13_000]);
  });

  it("should hold again after doubt, and after a loss", () => {
    const holding = held();
    holding.check(11_000);
    expect(holding.proved(12_000, 12_001)).toBe("held again");
    holding.lost();
    expect(holding.proved(14_000, 14_001)).toBe("held again");
    expect(holding.doubtAtMs).toBe(24_000);
  });
});

describe("LeaseHolding.check()", () => {
  it.each([
    [10_999, null],
    [11_000, { sinceMs: 1_000 }],
    [60_000, { sinceMs: 1_000 }],
  ])("should find at %d ms: %j", (nowMs, doubt) => {
    const holding = held();
    expect(holding.check(nowMs)).toEqual(doubt);
    expect(holding.isHeld).toBe(doubt === null);
  });

  it("should report doubt once", () => {
    const holding = held();
    holding.check(11_000);
    expect([holding.check(11_001), holding.lost(), holding.doubtAtMs]).toEqual([null, null, null]);
  });
});

describe("LeaseHolding.lost()", () => {
  it("should doubt at once, since the last proof, and once", () => {
    const holding = held();
    expect(holding.lost()).toEqual({ sinceMs: 1_000 });
    expect([holding.isHeld, holding.lost()]).toEqual([false, null]);
  });
});

describe("a lease that is held and observed", () => {
  it("should be held by no process when another one can end it, whatever is late", () => {
    const anyRenewal = fc.record({
      afterMs: fc.integer({ min: 0, max: 12_000 }),
      arrivesMs: fc.integer({ min: 0, max: 12_000 }),
      answersMs: fc.integer({ min: 0, max: 12_000 }),
    });
    fc.assert(
      fc.property(fc.array(anyRenewal, { minLength: 1, maxLength: 12 }), (renewals) => {
        const holding = create();
        let nowMs = 0;
        let raisedAtMs = Number.NEGATIVE_INFINITY;
        for (const { afterMs, arrivesMs, answersMs } of renewals) {
          nowMs += afterMs;
          // Check that the holder does not rely on the lease for too long. Until this renewal arrives, other processes
          // see the counter of the previous renewal, and can end the lease EXPIRY_MS after it.
          if (holding.check(nowMs) === null && holding.isHeld) expect(nowMs).toBeLessThan(raisedAtMs + EXPIRY_MS);
          const askedAtMs = nowMs;
          raisedAtMs = askedAtMs + arrivesMs;
          nowMs = raisedAtMs + answersMs;
          holding.check(nowMs);
          holding.proved(askedAtMs, nowMs);
          if (holding.isHeld) expect(nowMs).toBeLessThan(raisedAtMs + EXPIRY_MS);
        }
      }),
      { numRuns: 1_000 },
    );
  });
});
