import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import type { PolicyOverride } from "./health-policies.ts";
import {
  checkPolicy,
  DEFAULT_HEALTH_POLICY,
  type HealthPolicy,
  intervalsFor,
  laxerThresholds,
  longestHeartbeatMs,
  thresholdsOf,
} from "./policy.ts";

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
  ])("should judge %j: %s", (override, problem) => {
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
    expect(intervalsFor(policy(override), wishedMs)).toEqual({
      heartbeatMs,
      infoMs: 60_000,
      usageMs: 2000,
    });
  });
});

describe("thresholdsOf()", () => {
  it.each<[string, PolicyOverride, number, number, number]>([
    ["time alone", {}, 15_000, 60_000, 300_000],
    ["fewer missed", { unhealthyAfterMissed: 3 }, 15_000, 45_000, 300_000],
    ["time before missed", { unhealthyAfterMissed: 5 }, 15_000, 60_000, 300_000],
    ["both missed", { unhealthyAfterMissed: 3, unknownAfterMissed: 10 }, 10_000, 30_000, 100_000],
    ["UNKNOWN never sooner", { unknownAfterMissed: 5 }, 1000, 60_000, 60_000],
  ])(
    "should take %s: %j at %d ms",
    (_, override, heartbeatMs, unhealthyAfterMs, unknownAfterMs) => {
      expect(thresholdsOf(policy(override), heartbeatMs)).toEqual({
        unhealthyAfterMs,
        unknownAfterMs,
      });
    },
  );

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
    });
    const wish = fc.option(fc.integer({ min: 0, max: 1_000_000 }));
    fc.assert(
      fc.property(anyPolicy, wish, (given, wishedMs) => {
        fc.pre(checkPolicy(given).length === 0);
        const { heartbeatMs } = intervalsFor(given, wishedMs);
        const thresholds = thresholdsOf(given, heartbeatMs);
        expect(3 * heartbeatMs).toBeLessThanOrEqual(thresholds.unhealthyAfterMs);
        expect(thresholds.unknownAfterMs).toBeGreaterThanOrEqual(thresholds.unhealthyAfterMs);
        // No wish makes the control plane more lenient.
        const unwished = thresholdsOf(given, intervalsFor(given, null).heartbeatMs);
        expect(thresholds).toEqual(unwished);
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
