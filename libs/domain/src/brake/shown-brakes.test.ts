import { describe, expect, it } from "@jest/globals";
import type { BrakeRow, GroupLosses } from "./brake-plan.ts";
import type { BrakeSums, GroupSum } from "./brake-sums.ts";
import { showBrakes, shownMarks } from "./shown-brakes.ts";

const rowOf = (group: string, changes: Partial<BrakeRow> = {}): BrakeRow => ({
  ...{ group, mode: "NORMAL", sinceMs: 0, size: 0, windowLoss: 0, frozen: null },
  ...{ orders: 0, followed: 0, orderedLoss: 0, orderedBy: "", orderReason: "" },
  ...changes,
});
const FROZEN = { sinceMs: 5, actor: "token:t", reason: "new switch" };

const lossesOf = (group: string, lost: number, changes: Partial<GroupLosses> = {}): GroupLosses => ({
  ...{ group, lost, lostOfCluster: lost, unsettled: 0, pending: lost },
  ...changes,
});

const reports = (...groups: readonly Readonly<Record<string, GroupSum>>[]): ReadonlyMap<string, BrakeSums> =>
  new Map(groups.map((sums, index) => [`r${index}`, { sequence: 1, groups: new Map(Object.entries(sums)) }]));

const shown = (losses: readonly GroupLosses[], rows: readonly BrakeRow[], sums = reports()) =>
  showBrakes({ reports: sums, losses, rows }).map(({ group, state, counts, pending }) => [
    group,
    state,
    ...[counts.size, counts.silent, counts.lost, pending],
  ]);

describe("showBrakes()", () => {
  it("should show only the cluster if nothing is known", () => {
    expect(shown([], [])).toEqual([["cluster", "NORMAL", 0, 0, 0, 0]]);
  });

  it("should add the sums of all replicas, and name the groups of sums, losses and rows in order", () => {
    const sums = reports(
      { cluster: { healthy: 30, silent: 4 }, "zone=b": { healthy: 10, silent: 4 } },
      { cluster: { healthy: 2, silent: 0 } },
    );
    expect(shown([lossesOf("zone=c", 2), lossesOf("", 1)], [rowOf("zone=a")], sums)).toEqual([
      ["cluster", "NORMAL", 35, 4, 3, 3],
      ["zone=a", "NORMAL", 0, 0, 0, 0],
      ["zone=b", "NORMAL", 10, 4, 0, 0],
      ["zone=c", "NORMAL", 2, 0, 2, 2],
    ]);
  });

  it("should count for the cluster the losses of the cluster's own window", () => {
    const losses = [lossesOf("zone=a", 9, { lostOfCluster: 1, pending: 4 })];
    expect(shown(losses, [])).toEqual([
      ["cluster", "NORMAL", 1, 0, 1, 4],
      ["zone=a", "NORMAL", 9, 0, 9, 4],
    ]);
  });

  it.each([
    ["the size when its storm began", rowOf("zone=a", { mode: "PARTIAL", size: 20 }), "PARTIAL", 20],
    ["more, when more are counted", rowOf("zone=a", { mode: "FULL", size: 4 }), "FULL", 9],
    ["no earlier size without a storm", rowOf("zone=a", { size: 20 }), "NORMAL", 9],
    ["an operator's freeze", rowOf("zone=a", { mode: "PARTIAL", size: 20, frozen: FROZEN }), "FROZEN", 20],
  ])("should show of a group %s", (_, row, state, size) => {
    expect(shown([lossesOf("zone=a", 9)], [row])[1]).toEqual(["zone=a", state, size, 0, 9, 9]);
  });

  it("should count no node as silent and lost that sums count as HEALTHY still", () => {
    const sums = reports({ "zone=a": { healthy: 10, silent: 4 } });
    const losses = [lossesOf("zone=a", 9, { unsettled: 9 })];
    expect(shown(losses, [], sums)[1]).toEqual(["zone=a", "NORMAL", 15, 4, 9, 9]);
  });

  it("should show the rate of the stricter brake", () => {
    const rows = [rowOf("cluster", { mode: "FULL", size: 40 }), rowOf("zone=a", { mode: "PARTIAL", size: 20 })];
    expect(showBrakes({ reports: reports(), losses: [], rows }).map(({ rate }) => rate)).toMatchObject([
      { perMinute: 0, isByCluster: false },
      { perMinute: 0, isByCluster: true },
    ]);
  });
});

describe("shownMarks()", () => {
  it("should give groups in a storm, and those whose losses an order ended, a window of their own", () => {
    const rows = [
      rowOf("cluster", { windowLoss: 3 }),
      rowOf("zone=a", { mode: "PARTIAL", windowLoss: 3 }),
      rowOf("zone=b", { windowLoss: 9 }),
    ];
    expect(shownMarks(rows, { settled: 6, window: 7 })).toEqual({
      ...{ settled: 6, window: 7 },
      windows: new Map([
        ["zone=a", 3],
        ["zone=b", 9],
      ]),
    });
  });
});
