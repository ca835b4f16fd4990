import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import { connectionAfter } from "../session/connection.ts";
import type { HealthState } from "../states.ts";
import {
  afterHealthChange,
  FLAPPING_OUTAGES,
  FLAPPING_WINDOW_MS,
  flappingEndedEvent,
  flappingStartedEvent,
  isSteady,
  type OutageHistory,
  withinPast,
} from "./flapping.ts";

const NEW: OutageHistory = { outages: [], flappingSinceMs: null };
const BY = { actor: "replica:r", atMs: 0 };
const OPENED = connectionAfter("opened", BY);
const BROKEN = connectionAfter("broken", BY);

const lost = (history: OutageHistory, atMs: number, after: HealthState = "UNHEALTHY", connection = BROKEN) =>
  afterHealthChange(history, { before: "HEALTHY", after, connection }, atMs);
const back = (history: OutageHistory, atMs: number, before: HealthState = "UNHEALTHY") =>
  afterHealthChange(history, { before, after: "HEALTHY", connection: OPENED }, atMs);
/** Return the history after outages that start at these times and last 1 ms each. */
const after = (...times: readonly number[]) => times.reduce((it, atMs) => back(lost(it, atMs), atMs + 1), NEW);

describe("afterHealthChange()", () => {
  it.each([
    ["two outages", [0, 10], null],
    ["a third within the window", [0, 10, 599_999], 599_999],
    ["a third as the first leaves the window", [0, 10, 600_000], null],
    ["a fourth, once it flaps", [0, 10, 20, 700_000], 20],
  ])("should evaluate %s", (_, times, flappingSinceMs) => {
    expect(after(...times).flappingSinceMs).toBe(flappingSinceMs);
  });

  it("should count no first join, and UNHEALTHY to UNKNOWN as one outage", () => {
    const joined = back(NEW, 1, "UNKNOWN");
    expect(joined).toBe(NEW);
    const unhealthy = lost(joined, 2);
    const unknown = afterHealthChange(unhealthy, { before: "UNHEALTHY", after: "UNKNOWN", connection: BROKEN }, 3);
    expect(unknown).toBe(unhealthy);
    expect(back(unknown, 4, "UNKNOWN").outages).toEqual([{ startedAtMs: 2, endedAtMs: 4 }]);
    expect(lost(joined, 2, "UNKNOWN").outages).toEqual([{ startedAtMs: 2, endedAtMs: null }]);
  });

  it.each(["goodbye", "restarting"] as const)("should count no restart that the agent announced: %s", (signal) => {
    const connection = connectionAfter(signal, BY);
    const before = after(1);
    expect(lost(before, 5, "UNHEALTHY", connection)).toBe(before);
    expect(back(before, 6)).toBe(before);
  });

  it.each(["broken", "replica-lost"] as const)("should count an absence after %s", (signal) => {
    expect(lost(NEW, 5, "UNHEALTHY", connectionAfter(signal, BY)).outages).toHaveLength(1);
  });

  it("should flap exactly when enough outages began within a window, and remember only those that decide", () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 2, max: 400_000 }), { maxLength: 40 }), (gaps) => {
        let nowMs = 0;
        const times = gaps.map((gapMs) => (nowMs += gapMs));
        let history = NEW;
        let expected: number | null = null;
        for (const [index, atMs] of times.entries()) {
          history = lost(history, atMs);
          const within = times.slice(0, index + 1).filter((it) => atMs - it < FLAPPING_WINDOW_MS).length;
          if (within >= FLAPPING_OUTAGES) expected ??= atMs;
          expect(history.flappingSinceMs).toBe(expected);
          expect(history.outages.length).toBeLessThanOrEqual(FLAPPING_OUTAGES);
          history = back(history, atMs + 1);
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
  ])("should evaluate a node %s, since its outage ended, or began", (_, quietMs, holdMs, expected) => {
    const ended = { startedAtMs: 500, endedAtMs: 1_000 };
    expect(isSteady({ outages: [ended], flappingSinceMs: 0 }, 1_000 + quietMs, holdMs)).toBe(expected);
    const lasting = { startedAtMs: 1_000, endedAtMs: null };
    expect(isSteady({ outages: [lasting], flappingSinceMs: 0 }, 1_000 + quietMs, holdMs)).toBe(expected);
  });

  it("should end although the store's clock was set back by a day", () => {
    const outage = { startedAtMs: 86_400_000, endedAtMs: 86_400_001 };
    const history = withinPast({ outages: [outage], flappingSinceMs: 86_400_000 }, 1_000);
    expect(history.outages).toEqual([{ startedAtMs: 1_000, endedAtMs: 1_000 }]);
    expect(isSteady(history, 601_000, 600_000)).toBe(true);
    expect(withinPast(history, 2_000)).toBe(history);
  });

  it("should count a node without an outage as steady", () => {
    expect(isSteady({ outages: [], flappingSinceMs: 0 }, 1, 600_000)).toBe(true);
  });
});

describe("withinPast()", () => {
  it("should set back only what lies ahead", () => {
    const outages = [
      { startedAtMs: 1, endedAtMs: 2 },
      { startedAtMs: 900, endedAtMs: 2_000 },
      { startedAtMs: 2_000, endedAtMs: null },
    ];
    expect(withinPast({ outages, flappingSinceMs: null }, 1_000).outages).toEqual([
      { startedAtMs: 1, endedAtMs: 2 },
      { startedAtMs: 900, endedAtMs: 1_000 },
      { startedAtMs: 1_000, endedAtMs: null },
    ]);
  });
});

describe("the events of flapping", () => {
  it("should say how many outages a node had, and within what time", () => {
    const outages = [10_000, 11_000, 12_500].map((startedAtMs) => ({ startedAtMs, endedAtMs: null }));
    const history = { outages, flappingSinceMs: 12_500 };
    const started = {
      ...{ type: "node.flapping.started", subject: "n1", actor: "replica:h1", reason: "FLAPPING" },
      ...{ message: "3 outages within 3 s", before: null, after: { outages: 3, withinMs: 2_500 } },
    };
    expect(flappingStartedEvent("n1", history, "replica:h1")).toEqual(started);
    expect(flappingStartedEvent("n1", { ...history, flappingSinceMs: null }, "replica:h1")).toMatchObject({
      after: { withinMs: 0 },
    });
  });

  it("should say for how long it has been steady, and how long it flapped", () => {
    const end = { actor: "replica:h1", steadyMs: 600_900, flappingMs: 700_000 };
    expect(flappingEndedEvent("n1", end)).toEqual({
      ...{ type: "node.flapping.ended", subject: "n1", actor: "replica:h1", reason: "STEADY_AGAIN" },
      message: "no outage began or ended for 600 s",
      ...{ before: { flappingMs: 700_000 }, after: { steadyMs: 600_900 } },
    });
  });
});
