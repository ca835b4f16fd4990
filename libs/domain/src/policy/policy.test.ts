import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import type { PolicyOverride } from "./health-policies.ts";
import {
  checkPolicy,
  DEFAULT_HEALTH_POLICY,
  intervalsFor,
  laxerThresholds,
  longestHeartbeatMs,
  NO_WISHES,
  policyThresholds,
  thresholdsOf,
} from "./policy.ts";
import type { HealthPolicy } from "./policy-fields.ts";

function policy(override: PolicyOverride): HealthPolicy {
  return { ...DEFAULT_HEALTH_POLICY, ...override };
}

describe("checkPolicy()", () => {
  it("should find nothing wrong with the default", () => {
    expect(checkPolicy(DEFAULT_HEALTH_POLICY)).toEqual([]);
  });

  it.each<[PolicyOverride, string | null]>([
    [{ unhealthyAfterMs: 29_999 }, "at least two heartbeats of 15000 ms"],
    [{ unhealthyAfterMs: 30_000 }, null],
    [{ unhealthyAfterMissed: 2 }, "unhealthyAfterMissed is 2: it must be at least 3"],
    [{ unhealthyAfterMissed: 3 }, null],
    [{ unknownAfterMs: 60_000 }, "it must be greater than unhealthyAfterMs, 60000"],
    [{ unknownAfterMs: 60_001 }, null],
    [{ unhealthyAfterMissed: 3, unknownAfterMissed: 3 }, "greater than unhealthyAfterMissed, 3"],
    [{ unhealthyAfterMissed: 3, unknownAfterMissed: 4 }, null],
    [{ unknownAfterMissed: 4 }, "must take longer than unhealthyAfterMs, 60000"],
    [{ unknownAfterMissed: 5 }, null],
    [{ heartbeatIntervalMs: 0 }, "heartbeatIntervalMs is 0: it must be a whole number"],
    [{ infoIntervalMs: 1.5 }, "infoIntervalMs is 1.5: it must be a whole number"],
    [{ usageIntervalMs: Number.NaN }, "usageIntervalMs is NaN: it must be a whole number"],
    [{ unknownAfterMs: Number.POSITIVE_INFINITY }, "unknownAfterMs is Infinity"],
  ])("should evaluate %j: %s", (override, problem) => {
    const problems = checkPolicy(policy(override));

    expect(problems).toEqual(problem === null ? [] : [expect.stringContaining(problem)]);
  });

  it("should find all contradictions at once", () => {
    const problems = checkPolicy(policy({ unhealthyAfterMs: 20_000, unknownAfterMs: 10_000 }));

    expect(problems).toHaveLength(2);
  });
});

describe("intervalsFor()", () => {
  it.each<[string, PolicyOverride, number | null, number]>([
    ["the policy's interval", {}, null, 15_000],
    ["a third of the threshold", { unhealthyAfterMs: 30_000 }, null, 10_000],
    ["whole milliseconds", { unhealthyAfterMs: 40_000 }, null, 13_333],
    ["no wish to beat more often", {}, 1000, 15_000],
    ["a wish to beat less often", {}, 18_000, 18_000],
    ["a wish up to a third of the threshold", {}, 60_000, 20_000],
    ["no wish where missed heartbeats count", { unhealthyAfterMissed: 4 }, 18_000, 15_000],
    ["no wish where they count for UNKNOWN", { unknownAfterMissed: 9 }, 18_000, 15_000],
  ])("should grant %s: %j, wish %s", (_, override, wishedMs, heartbeatMs) => {
    expect(intervalsFor(policy(override), { heartbeatMs: wishedMs, infoMs: null })).toEqual({
      heartbeatMs,
      infoMs: 60_000,
      usageMs: 2000,
    });
  });

  const MAY = { agentMayShorten: true };
  it.each<[string, PolicyOverride, number, number]>([
    ["a shorter wish", MAY, 5_000, 5_000],
    ["no less than a second", MAY, 10, 1_000],
    ["whole steps, rounded up", MAY, 5_001, 5_100],
    ["nothing longer by rounding", { ...MAY, heartbeatIntervalMs: 10_050 }, 10_049, 10_050],
    ["nothing below a policy that is shorter still", { ...MAY, heartbeatIntervalMs: 500 }, 10, 500],
    ["a longer wish as before", MAY, 60_000, 20_000],
    ["a shorter wish where missed heartbeats count", { ...MAY, unhealthyAfterMissed: 4 }, 5_000, 5_000],
    [
      "a shorter wish of a longer interval than the threshold bears",
      { ...MAY, unhealthyAfterMs: 30_000 },
      9_000,
      9_000,
    ],
  ])("should let an agent shorten: %s: %j, wish %d", (_, override, wishedMs, heartbeatMs) => {
    const given = policy(override);
    const wishes = { heartbeatMs: wishedMs, infoMs: null };
    expect(intervalsFor(given, wishes).heartbeatMs).toBe(heartbeatMs);
  });

  it.each<[string, PolicyOverride, number | null, number]>([
    ["no shorter one", {}, 20_000, 60_000],
    ["a shorter one where the policy lets it", MAY, 20_000, 20_000],
    ["no less than ten seconds", MAY, 1_000, 10_000],
    ["no longer one", MAY, 600_000, 60_000],
    ["none", MAY, null, 60_000],
  ])("should grant %s between reports: %j, wish %s", (_, override, infoMs, grantedMs) => {
    expect(intervalsFor(policy(override), { heartbeatMs: null, infoMs }).infoMs).toBe(grantedMs);
  });
});

describe("thresholdsOf()", () => {
  it.each<[string, PolicyOverride, number, number, number]>([
    ["time alone", {}, 15_000, 60_000, 300_000],
    ["fewer missed", { unhealthyAfterMissed: 3 }, 15_000, 45_000, 300_000],
    ["time before missed", { unhealthyAfterMissed: 5 }, 15_000, 60_000, 300_000],
    ["both missed", { unhealthyAfterMissed: 3, unknownAfterMissed: 10 }, 10_000, 30_000, 100_000],
    ["UNKNOWN never sooner", { unknownAfterMissed: 5 }, 1000, 60_000, 60_000],
  ])("should take %s: %j at %d ms", (_, override, heartbeatMs, unhealthyAfterMs, unknownAfterMs) => {
    expect(thresholdsOf(policy(override), heartbeatMs)).toEqual({
      unhealthyAfterMs,
      unknownAfterMs,
    });
  });

  it("should leave room for three heartbeats in any policy that is sound", () => {
    const amount = fc.integer({ min: 10, max: 600_000 });
    const missed = fc.option(fc.integer({ min: 1, max: 30 }));
    const anyPolicy = fc.record({
      unhealthyAfterMs: amount,
      unhealthyAfterMissed: missed,
      unknownAfterMs: amount,
      unknownAfterMissed: missed,
      heartbeatIntervalMs: fc.integer({ min: 10, max: 60_000 }),
      infoIntervalMs: amount,
      usageIntervalMs: amount,
      flappingHoldMs: fc.nat(),
      hardwareHold: fc.boolean(),
      rebootHoldMs: fc.nat(),
      gpuMaxCelsius: fc.option(fc.integer({ min: 1, max: 200 })),
      agentMayShorten: fc.boolean(),
    });
    const wish = fc.option(fc.integer({ min: 0, max: 1_000_000 }));
    fc.assert(
      fc.property(anyPolicy, wish, (given, wishedMs) => {
        fc.pre(checkPolicy(given).length === 0);
        const { heartbeatMs } = intervalsFor(given, { heartbeatMs: wishedMs, infoMs: null });
        const thresholds = policyThresholds(given);
        expect(3 * heartbeatMs).toBeLessThanOrEqual(thresholds.unhealthyAfterMs);
        expect(thresholds.unknownAfterMs).toBeGreaterThanOrEqual(thresholds.unhealthyAfterMs);
        const unwished = intervalsFor(given, NO_WISHES).heartbeatMs;
        expect(thresholds).toEqual(thresholdsOf(given, unwished));
        if (given.agentMayShorten) expect(heartbeatMs).toBeGreaterThanOrEqual(Math.min(unwished, 1_000));
        else expect(heartbeatMs).toBeGreaterThanOrEqual(unwished);
      }),
    );
  });
});

describe("laxerThresholds()", () => {
  it("should take the longer of each, whichever side it is on", () => {
    const kept = { unhealthyAfterMs: 60, unknownAfterMs: 100 };
    const wanted = { unhealthyAfterMs: 30, unknownAfterMs: 200 };
    expect(laxerThresholds(kept, wanted)).toEqual({ unhealthyAfterMs: 60, unknownAfterMs: 200 });
  });
});

describe("longestHeartbeatMs()", () => {
  it("should be a third of the time to UNHEALTHY", () => {
    expect(longestHeartbeatMs({ unhealthyAfterMs: 10_000, unknownAfterMs: 20_000 })).toBe(3_333);
  });
});
