import { describe, expect, it } from "@jest/globals";
import { LEASE_TIMING, LeaseHolding, OtherLeases } from "@rollcall/domain";
import { faultsOverIntervals } from "@rollcall/testkit/time";

const { expiryMs: limitMs } = LEASE_TIMING;
const stepMs = 1_000;

describe("a lease, over a hundred intervals", () => {
  it("should be held by its own process while it is renewed, and not afterwards", async () => {
    const faults = await faultsOverIntervals(() => {
      let nowMs = 0;
      const holding = new LeaseHolding(LEASE_TIMING);
      holding.proved(nowMs, nowMs);
      const pass = (ms: number) => {
        nowMs += ms;
        holding.check(nowMs);
      };
      return { limitMs, stepMs, pass, progress: () => holding.proved(nowMs, nowMs), isKept: () => holding.isHeld };
    });
    expect(faults).toEqual([]);
  });

  it("should be in doubt for its own process after each interval, and held again after each renewal", () => {
    const holding = new LeaseHolding(LEASE_TIMING);
    for (let interval = 0; interval < 100; interval += 1) {
      const nowMs = interval * 2 * limitMs;
      expect(holding.proved(nowMs, nowMs)).toBe(interval === 0 ? "held" : "held again");
      expect(holding.check(nowMs + limitMs - 1)).toBeNull();
      expect(holding.check(nowMs + limitMs)).toEqual({ sinceMs: nowMs });
      expect(holding.check(nowMs + limitMs + 1)).toBeNull();
    }
  });

  it.each(["keeper", "contender"] as const)("should not be ended by a %s while its counter moves", async (role) => {
    const faults = await faultsOverIntervals(() => {
      let [nowMs, counter] = [0, 0];
      let expired: readonly unknown[] = [];
      const leases = new OtherLeases("me", role, LEASE_TIMING);
      const pass = (ms: number) => {
        nowMs += ms;
        const rows = [{ name: "h1", instance: "h1", counter }];
        expired = leases.expiredAmong(rows, { askedAtMs: nowMs, answeredAtMs: nowMs }, true);
      };
      pass(0);
      const progress = () => {
        counter += 1;
      };
      return { limitMs, stepMs, pass, progress, isKept: () => expired.length === 0 };
    });
    expect(faults).toEqual([]);
  });
});
