import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import {
  afterHealthChange,
  FLAPPING_WINDOW_MS,
  flappingEndedEvent,
  flappingHealth,
  flappingStartedEvent,
  type HealthHistory,
  isSteady,
  MOST_CHANGES,
  withinPast,
} from "./flapping.ts";

const NEW: HealthHistory = { changes: [], flappingSinceMs: null };
const HEALTHY = {
  state: "HEALTHY",
  sinceMs: 1,
  reason: "HEARTBEAT_RECEIVED",
  message: "",
  actor: "replica:r",
} as const;

const after = (...times: readonly number[]) => times.reduce((history, atMs) => afterHealthChange(history, atMs), NEW);

describe("afterHealthChange()", () => {
  it.each([
    ["five changes", [0, 1, 2, 3, 4], null],
    ["a sixth within the window", [0, 1, 2, 3, 4, 599_999], 599_999],
    ["a sixth as the first one leaves the window", [0, 1, 2, 3, 4, 600_000], null],
    ["a seventh, when it has begun", [0, 1, 2, 3, 4, 5, 700_000], 5],
  ])("should decide on %s", (_, times, flappingSinceMs) => {
    expect(after(...times).flappingSinceMs).toBe(flappingSinceMs);
  });

  it("should flap just when more than five changes lie within one window, and remember only those that decide", () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: 400_000 }), { maxLength: 40 }), (gaps) => {
        let nowMs = 0;
        const times = gaps.map((gapMs) => (nowMs += gapMs));
        let history = NEW;
        let expected: number | null = null;
        for (const [index, atMs] of times.entries()) {
          history = afterHealthChange(history, atMs);
          const within = times.slice(0, index + 1).filter((it) => atMs - it < FLAPPING_WINDOW_MS).length;
          if (within > MOST_CHANGES) expected ??= atMs;
          expect(history.flappingSinceMs).toBe(expected);
          expect(history.changes.length).toBeLessThanOrEqual(MOST_CHANGES + 1);
        }
      }),
    );
  });
});

describe("isSteady()", () => {
  it.each([
    ["just before the time of its policy", 599_999, 600_000, false],
    ["at the time of its policy", 600_000, 600_000, true],
    ["after a shorter time of its policy", 60_000, 60_000, true],
    ["never held, within a window", 599_999, 0, false],
    ["never held, after a window", 600_000, 0, true],
  ])("should decide on a node %s", (_, quietMs, holdMs, expected) => {
    expect(isSteady({ changes: [1_000], flappingSinceMs: 0 }, 1_000 + quietMs, holdMs)).toBe(expected);
  });

  it("should end although the record's clock was set back by a day", () => {
    const ahead: HealthHistory = { changes: [86_400_000], flappingSinceMs: 86_400_000 };
    const history = withinPast(ahead, 1_000);
    expect(history.changes).toEqual([1_000]);
    expect(isSteady(history, 601_000, 600_000)).toBe(true);
    expect(withinPast(history, 2_000)).toBe(history);
  });
});

describe("flappingHealth()", () => {
  const flapping: HealthHistory = { changes: [1], flappingSinceMs: 1 };

  it("should be UNHEALTHY while it is held, and as it is when it never is", () => {
    expect(flappingHealth(HEALTHY, flapping, 600_000)).toMatchObject({
      state: "UNHEALTHY",
      reason: "FLAPPING",
      message: "changed health more than 5 times in 10 minutes; until it has been steady for 10 min",
    });
    expect(flappingHealth(HEALTHY, flapping, 0)).toMatchObject({
      state: "HEALTHY",
      reason: "FLAPPING",
    });
    expect(flappingHealth(HEALTHY, NEW, 600_000)).toBe(HEALTHY);
  });
});

describe("the events of flapping", () => {
  it("should tell how often a node changed, and within what time", () => {
    const history = { changes: [10_000, 11_000, 12_500], flappingSinceMs: 12_500 };
    const started = {
      ...{ type: "node.flapping.started", subject: "n1", actor: "replica:h1", reason: "FLAPPING" },
      ...{ message: "3 changes of health in 3 s", before: null, after: { changes: 3, withinMs: 2_500 } },
    };
    expect(flappingStartedEvent("n1", history, "replica:h1")).toEqual(started);
    expect(flappingStartedEvent("n1", { ...history, flappingSinceMs: null }, "replica:h1")).toMatchObject({
      after: { withinMs: 0 },
    });
  });

  it("should tell for how long it has been steady, and how long it flapped", () => {
    const end = { actor: "replica:h1", steadyMs: 600_900, flappingMs: 700_000 };
    expect(flappingEndedEvent("n1", end)).toEqual({
      ...{ type: "node.flapping.ended", subject: "n1", actor: "replica:h1", reason: "STEADY_AGAIN" },
      ...{ message: "no change of health for 600 s", before: { flappingMs: 700_000 }, after: { steadyMs: 600_900 } },
    });
  });

  it("should have a node without a change count as steady", () => {
    expect(isSteady({ changes: [], flappingSinceMs: 0 }, 1, 600_000)).toBe(true);
  });

  it("should set back only what lies ahead", () => {
    expect(withinPast({ changes: [1, 2_000], flappingSinceMs: null }, 1_000).changes).toEqual([1, 1_000]);
  });
});
