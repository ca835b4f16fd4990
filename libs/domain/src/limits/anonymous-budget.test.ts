import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import { AnonymousBudget } from "./anonymous-budget.ts";

const LIMITS = { burst: 100, perSecond: 10, mostOwed: 50, maxAddresses: 3 };
const HERE = "10.0.0.1:1";

describe("AnonymousBudget", () => {
  it("should let an address spend its burst, on any port, and have it wait for its debt", () => {
    const budget = new AnonymousBudget(LIMITS);
    budget.spend(HERE, 100, 0);
    expect(budget.msUntilPaid("10.0.0.1:2", 0)).toBe(0);
    budget.spend("10.0.0.1:3", 20, 0);
    expect(budget.msUntilPaid(HERE, 0)).toBe(2_000);
    expect(budget.msUntilPaid(HERE, 1_500)).toBe(500);
    expect(budget.msUntilPaid("10.0.0.1", 2_000)).toBe(0);
    expect(budget.msUntilPaid("10.0.0.2:1", 0)).toBe(0);
  });

  it("should let a debt grow no further for costs whose largest debt is less, and forgive none for them", () => {
    const budget = new AnonymousBudget(LIMITS);
    for (let cost = 0; cost < 5; cost += 1) budget.spend(HERE, 50, 0, 20);
    expect(budget.msUntilPaid(HERE, 0)).toBe(2_000);
    budget.spend(HERE, 20, 0);
    expect(budget.msUntilPaid(HERE, 0)).toBe(4_000);
    budget.spend(HERE, 50, 0, 20);
    expect(budget.msUntilPaid(HERE, 0)).toBe(4_000);
  });

  it("should take the /64 of IPv6 for one address", () => {
    const budget = new AnonymousBudget(LIMITS);
    budget.spend("[2001:db8::1]:1", 110, 0);
    expect(budget.msUntilPaid("2001:db8::ffff", 0)).toBe(1_000);
    expect(budget.msUntilPaid("2001:db8:0:1::1", 0)).toBe(0);
  });

  it("should count nothing for spared addresses", () => {
    const budget = new AnonymousBudget(LIMITS, (host) => host === "10.0.0.1");
    budget.spend(HERE, 1_000, 0);
    expect([budget.msUntilPaid(HERE, 0), budget.size]).toEqual([0, 0]);
    const behindProxy = new AnonymousBudget(LIMITS, (host) => host === "2001:db8::1");
    behindProxy.spend("[2001:db8::1]:1", 1_000, 0);
    expect(behindProxy.isSpared("2001:db8::1")).toBe(true);
    expect(behindProxy.size).toBe(0);
  });

  it("should forget the address that spent longest ago for a new one", () => {
    const budget = new AnonymousBudget(LIMITS);
    for (const host of ["a", "b", "c", "d"]) budget.spend(host, 150, 0);
    expect(["a", "b", "c", "d"].map((host) => budget.msUntilPaid(host, 0) > 0)).toEqual([false, true, true, true]);
  });

  it("should bound each caller's wait by the largest debt, and the number of callers remembered", () => {
    const step = fc.record({
      host: fc.constantFrom("a", "b", "c", "d", "e"),
      cost: fc.nat(1_000),
      passedMs: fc.nat(20_000),
    });
    fc.assert(
      fc.property(fc.array(step), (steps) => {
        const budget = new AnonymousBudget(LIMITS);
        let nowMs = 0;
        for (const { host, cost, passedMs } of steps) {
          nowMs += passedMs;
          budget.spend(host, cost, nowMs);
          expect(budget.msUntilPaid(host, nowMs)).toBeLessThanOrEqual(5_000);
          expect(budget.msUntilPaid(host, nowMs + 5_000)).toBe(0);
          expect(budget.size).toBeLessThanOrEqual(3);
        }
      }),
    );
  });
});
