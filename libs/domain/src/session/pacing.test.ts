import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import {
  heartbeatsPerSecond,
  mayAdmit,
  nextFactor,
  type PacedGroup,
  pacedIntervalMs,
  reconnectWindow,
  stretchFactor,
} from "./pacing.ts";

const group = fc
  .record({
    intervalMs: fc.integer({ min: 100, max: 60_000 }),
    stretch: fc.double({ min: 1, max: 20, noNaN: true }),
    sessions: fc.integer({ min: 1, max: 100_000 }),
  })
  .map(({ intervalMs, stretch, sessions }): PacedGroup => {
    return { intervalMs, longestMs: Math.floor(intervalMs * stretch), sessions };
  });
const groups = fc.array(group, { minLength: 1, maxLength: 6 });
const budget = fc.double({ min: 1, max: 100_000, noNaN: true });

describe("stretchFactor()", () => {
  it("should stretch nothing within the budget", () => {
    const agents = { intervalMs: 15_000, longestMs: 20_000, sessions: 15_000 };
    expect(stretchFactor([agents], 1_000)).toBe(1);
    expect(stretchFactor([], 1)).toBe(1);
  });

  it("should keep the total within the budget wherever that can be", () => {
    fc.assert(
      fc.property(groups, budget, (some, perSecond) => {
        const factor = stretchFactor(some, perSecond);
        const longest = heartbeatsPerSecond(some, Number.POSITIVE_INFINITY);
        const total = heartbeatsPerSecond(some, factor);
        if (longest <= perSecond) expect(total).toBeLessThanOrEqual(perSecond);
        else expect(total).toBe(longest);
      }),
    );
  });

  it("should never make an interval shorter than its policy's, nor longer than it may be", () => {
    fc.assert(
      fc.property(groups, budget, (some, perSecond) => {
        const factor = stretchFactor(some, perSecond);
        for (const it of some) {
          const intervalMs = pacedIntervalMs(it, factor);
          expect(intervalMs).toBeGreaterThanOrEqual(it.intervalMs);
          expect(intervalMs).toBeLessThanOrEqual(Math.max(it.intervalMs, it.longestMs));
        }
      }),
    );
  });
});

describe("nextFactor()", () => {
  it("should keep within the budget from wherever it comes, and settle", () => {
    fc.assert(
      fc.property(groups, groups, budget, (before, after, perSecond) => {
        const factor = nextFactor(stretchFactor(before, perSecond), after, perSecond);
        expect(factor).toBeGreaterThanOrEqual(stretchFactor(after, perSecond));
        expect(nextFactor(factor, after, perSecond)).toBe(factor);
      }),
    );
  });

  it("should not move for a session more or less", () => {
    const agents = (sessions: number) => [{ intervalMs: 1_000, longestMs: 10_000, sessions }];
    const factor = nextFactor(1, agents(1_050), 1_000);
    expect(factor).toBeGreaterThan(1);
    expect(nextFactor(factor, agents(1_000), 1_000)).toBe(factor);
    expect(nextFactor(factor, agents(1_051), 1_000)).toBe(factor);
    expect(nextFactor(factor, agents(800), 1_000)).toBe(1);
  });
});

describe("mayAdmit()", () => {
  it("should admit as many as fit when all beat as seldom as they may", () => {
    const agents = (sessions: number) => [{ intervalMs: 5_000, longestMs: 20_000, sessions }];
    const newcomer = { intervalMs: 5_000, longestMs: 20_000 };
    expect(mayAdmit(agents(1_999), newcomer, 100)).toBe(true);
    expect(mayAdmit(agents(2_000), newcomer, 100)).toBe(false);
  });

  it("should never admit a session that no stretching fits into the budget", () => {
    fc.assert(
      fc.property(groups, group, budget, (some, newcomer, perSecond) => {
        fc.pre(mayAdmit(some, newcomer, perSecond));
        const all = [...some, { ...newcomer, sessions: 1 }];
        const total = heartbeatsPerSecond(all, stretchFactor(all, perSecond));
        // Allow for rounding, because the same numbers are added in another order.
        expect(total).toBeLessThanOrEqual(perSecond * (1 + 1e-9));
      }),
    );
  });
});

describe("reconnectWindow()", () => {
  it.each([
    [{ agents: 0, replicas: 3, hellosPerSecond: 500 }, 1_000],
    [{ agents: 10_000, replicas: 1, hellosPerSecond: 500 }, 20_000],
    [{ agents: 10_000, replicas: 4, hellosPerSecond: 500 }, 5_000],
    [{ agents: 10_000, replicas: 0, hellosPerSecond: 500 }, 20_000],
    [{ agents: 1, replicas: 1, hellosPerSecond: 500 }, 1_000],
  ])("should spread %j over %d ms", (plan, windowMs) => {
    expect(reconnectWindow(plan)).toBe(windowMs);
  });

  it("should never bring more hellos a second than the replicas take", () => {
    const count = fc.integer({ min: 1, max: 1_000_000 });
    fc.assert(
      fc.property(count, fc.integer({ min: 1, max: 50 }), count, (agents, replicas, each) => {
        const windowMs = reconnectWindow({ agents, replicas, hellosPerSecond: each });
        expect((agents * 1000) / windowMs).toBeLessThanOrEqual(Math.max(replicas * each, agents));
        expect(windowMs).toBeGreaterThanOrEqual(1_000);
      }),
    );
  });
});
