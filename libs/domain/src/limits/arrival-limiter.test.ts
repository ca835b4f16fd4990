import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import { ArrivalLimiter } from "./arrival-limiter.ts";

const LIMITS = {
  total: { perSecond: 10, burst: 4 },
  perKey: { perSecond: 5, burst: 2 },
  maxKeys: 10,
};

function outcomes(limiter: ArrivalLimiter, key: string | null, count: number, nowMs = 0) {
  return Array.from({ length: count }, () => {
    const decision = limiter.ask(key, nowMs);
    return decision.ok ? "in" : `${decision.limit} ${decision.retryAfterMs}`;
  });
}

describe("ArrivalLimiter", () => {
  it.each([
    ["a key", "a", 200, 2],
    ["all arrivals", null, 100, 4],
  ] as const)(
    "should admit one arrival of %s per interval, and its burst again after a rest",
    (_, key, everyMs, burst) => {
      const limiter = new ArrivalLimiter(LIMITS, 0);
      expect(outcomes(limiter, key, burst)).toEqual(Array(burst).fill("in"));
      let nowMs = 0;
      for (let interval = 0; interval < 100; interval += 1) {
        nowMs += everyMs;
        // Those that are turned away do not postpone the next admission.
        expect(outcomes(limiter, key, 3, nowMs).map((it) => it === "in")).toEqual([true, false, false]);
      }
      nowMs += burst * everyMs;
      expect(outcomes(limiter, key, burst + 1, nowMs).filter((it) => it === "in")).toHaveLength(burst);
    },
  );

  it("should give agents that it turns away different times to return", () => {
    const limiter = new ArrivalLimiter(LIMITS, 0);
    expect(outcomes(limiter, null, 7)).toEqual(["in", "in", "in", "in", "total 100", "total 200", "total 300"]);
    expect(outcomes(limiter, null, 2, 100)).toEqual(["in", "total 300"]);
  });

  it("should limit each key separately, and not charge the total for refused calls", () => {
    const limiter = new ArrivalLimiter(LIMITS, 0);
    expect(outcomes(limiter, "a", 4)).toEqual(["in", "in", "key 200", "key 400"]);
    expect(outcomes(limiter, "b", 2)).toEqual(["in", "in"]);
    expect(outcomes(limiter, "c", 1)[0]).toMatch(/^total /);
  });

  it("should return the permits of failed requests", () => {
    const limiter = new ArrivalLimiter(LIMITS, 0);
    for (let call = 0; call < 50; call += 1) {
      expect(limiter.ask("a", 0).ok).toBe(true);
      limiter.giveBack("a");
    }
  });

  it("should send no caller away for more than a minute", () => {
    const slow = { perSecond: 1, burst: 1 };
    const limiter = new ArrivalLimiter({ total: slow, perKey: slow, maxKeys: 1 }, 0);
    fc.assert(
      fc.property(fc.nat({ max: 50 }), (waitMs) => {
        const decision = limiter.ask(null, waitMs);
        if (decision.ok) return;
        expect(decision.retryAfterMs).toBeGreaterThan(0);
        expect(decision.retryAfterMs).toBeLessThanOrEqual(60_000);
      }),
      { numRuns: 500 },
    );
  });
});
