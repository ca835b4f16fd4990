import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import { planDescriptors } from "./descriptor-plan.ts";

const HEALTH = { record: 16, api: 8_192, agents: null };

describe("planDescriptors()", () => {
  it("should give each port its configured number if there are enough", () => {
    expect(planDescriptors({ ...HEALTH, agents: 20_000, limit: 1_048_576 })).toEqual({
      api: 8_192,
      agents: 20_000,
      internal: 1_024,
      needed: 29_488,
      isShort: false,
    });
    expect(planDescriptors({ ...HEALTH, limit: null })).toMatchObject({
      api: 8_192,
      agents: 65_536,
      isShort: false,
    });
  });

  it("should give agents the rest, and report if that is less than a replica needs", () => {
    expect(planDescriptors({ ...HEALTH, limit: 20_000 })).toMatchObject({
      api: 8_192,
      agents: 10_512,
      isShort: false,
    });
    expect(planDescriptors({ ...HEALTH, limit: 19_487 }).isShort).toBe(true);
    expect(planDescriptors({ ...HEALTH, limit: 19_488 }).isShort).toBe(false);
  });

  it("should leave the API a quarter, and probes theirs, where there are few", () => {
    expect(planDescriptors({ ...HEALTH, limit: 1_024 })).toEqual({
      api: 188,
      agents: 517,
      internal: 47,
      needed: 19_488,
      isShort: true,
    });
  });

  it("should give the API everything in a process without agents", () => {
    const registry = { record: 16, api: 8_192 };
    expect(planDescriptors({ ...registry, limit: 65_536 })).toMatchObject({
      api: 8_192,
      agents: 0,
      internal: 0,
      isShort: false,
    });
    expect(planDescriptors({ ...registry, limit: 1_024 })).toMatchObject({
      api: 752,
      isShort: true,
    });
  });

  it("should never promise more than there is, nor nothing to any port", () => {
    const needs = fc.record({
      limit: fc.integer({ min: 512, max: 2_000_000 }),
      record: fc.integer({ min: 2, max: 100 }),
      api: fc.integer({ min: 16, max: 200_000 }),
      agents: fc.option(fc.integer({ min: 16, max: 1_000_000 })),
    });
    fc.assert(
      fc.property(needs, (given) => {
        const { api, agents, internal, isShort } = planDescriptors(given);
        expect(256 + given.record + api + agents + internal).toBeLessThanOrEqual(given.limit);
        expect(Math.min(api, agents, internal)).toBeGreaterThan(0);
        expect(api).toBeLessThanOrEqual(given.api);
        if (!isShort) expect([api, agents >= (given.agents ?? 10_000)]).toEqual([given.api, true]);
      }),
    );
  });
});
