import { describe, expect, it } from "@jest/globals";
import { BrakeHistory } from "./brake-history.ts";

function look(lastLoss: number, sequences: Readonly<Record<string, number>>, healthy = 0) {
  const reports = Object.entries(sequences).map(([id, sequence]) => [id, { sequence, groups: new Map() }] as const);
  return { lastLoss, reports: new Map(reports), totals: new Map([["zone=a", { healthy, silent: 0 }]]) };
}

describe("BrakeHistory.settledLoss", () => {
  it("should wait for two further reports of every replica", () => {
    const history = new BrakeHistory({ atMs: 0, lossBefore: 0 });
    const settled = [
      look(5, { a: 1, b: 1 }),
      look(6, { a: 3, b: 2 }),
      look(6, { a: 4, b: 3 }),
      look(6, { a: 9, b: 3 }),
      look(6, { a: 9, b: 4 }),
    ].map((it, index) => {
      history.observe(it, index * 1_000);
      return history.settledLoss;
    });
    expect(settled).toEqual([0, 0, 5, 5, 6]);
    expect(history.lastLoss).toBe(6);
  });

  it("should know nothing without a report, and not wait for a replica that came later", () => {
    const history = new BrakeHistory({ atMs: 0, lossBefore: 0 });
    history.observe(look(5, { a: 1 }), 0);
    history.observe(look(5, {}), 1_000);
    expect(history.settledLoss).toBe(0);
    history.observe(look(7, { a: 3, b: 1 }), 2_000);
    expect(history.settledLoss).toBe(5);
  });
});

describe("BrakeHistory, the window", () => {
  it("should start a minute ago, with the counts of that time", () => {
    const history = new BrakeHistory({ atMs: 0, lossBefore: 3 });
    const seen = (): readonly number[] => [history.windowLoss, history.healthyAtStart("zone=a")];
    expect(seen()).toEqual([3, 0]);
    history.observe(look(5, {}, 10), 1_000);
    // Scan again within the same second, which adds no sample.
    history.observe(look(9, {}, 11), 1_999);
    history.observe(look(9, {}, 12), 60_999);
    expect(seen()).toEqual([3, 0]);
    history.observe(look(9, {}, 4), 62_000);
    expect(seen()).toEqual([5, 10]);
    expect(history.healthyAtStart("zone=b")).toBe(0);
    history.observe(look(9, {}, 4), 120_999);
    expect(seen()).toEqual([9, 12]);
  });
});
