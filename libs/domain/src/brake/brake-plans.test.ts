import { describe, expect, it } from "@jest/globals";
import { BRAKE_CLUSTER } from "./brake.ts";
import type { BrakeReading, BrakeRow } from "./brake-plan.ts";
import { BrakePlanner, MOST_BRAKE_GROUPS } from "./brake-planner.ts";

const UNORDERED = { frozen: null, orders: 0, followed: 0, orderedLoss: 0, orderedBy: "", orderReason: "" };
const FROZEN = { frozen: { sinceMs: 0, actor: "token:t", reason: "hands off" } };

function row(group: string, changes: Partial<BrakeRow> = {}): BrakeRow {
  return { ...UNORDERED, group, mode: "NORMAL", size: 0, windowLoss: 0, sinceMs: 0, ...changes };
}

/**
 * The counts of a group: HEALTHY nodes, how many of them are silent, lost nodes, pending reactions and unsettled
 * losses.
 */
type Counted = readonly [healthy: number, silent: number, lost: number, pending: number, unsettled?: number];

function reading(groups: Readonly<Record<string, Counted>>, changes: Partial<BrakeReading> = {}): BrakeReading {
  const sums = new Map(Object.entries(groups).map(([group, [healthy, silent]]) => [group, { healthy, silent }]));
  const all = [...sums.values()];
  const sum = (key: "healthy" | "silent") => all.reduce((total, it) => total + it[key], 0);
  const cluster = { healthy: sum("healthy"), silent: sum("silent") };
  sums.delete("");
  return {
    reports: new Map([["h1", { sequence: 1, groups: sums.set(BRAKE_CLUSTER, cluster) }]]),
    losses: Object.entries(groups).map(([group, [, , lost, pending, unsettled = 0]]) => {
      return { group, lost, lostOfCluster: lost, unsettled, pending };
    }),
    lastLoss: 0,
    rows: [],
    ...changes,
  };
}

function planner(rows: readonly BrakeRow[] = []) {
  return new BrakePlanner({ atMs: 0, lossBefore: 0, rows });
}

describe("BrakePlanner.plan(), releases", () => {
  it("should begin with the groups that wait for the fewest, and leave out those that wait for none", () => {
    const groups = {
      "zone=a": [99, 0, 3, 3],
      "zone=b": [99, 0, 1, 1],
      "zone=c": [99, 0, 0, 0],
      "": [9, 0, 2, 2],
    } as const;
    const { releases } = planner().plan(reading(groups), 1_000);
    expect(releases).toEqual([
      { group: "zone=b", most: 1, upTo: 0, brake: "NORMAL" },
      { group: "", most: 2, upTo: 0, brake: "NORMAL" },
      { group: "zone=a", most: 3, upTo: 0, brake: "NORMAL" },
    ]);
  });

  it("should share among the groups what the cluster's brake allows, and say that it paces them", () => {
    // Use groups of two nodes, because they have no brake.
    const pairs = Array.from({ length: 25 }, (_, index) => [`rack=${index}`, [0, 0, 2, index < 4 ? 2 : 0]] as const);
    const groups = { "zone=z": [10, 0, 0, 0], ...Object.fromEntries(pairs), "rack=9": [0, 0, 2, 1] } as const;
    const braked = planner();
    expect(braked.plan(reading(groups), 0)).toMatchObject({
      changes: [{ group: BRAKE_CLUSTER, after: "PARTIAL", size: 60 }],
      releases: [],
    });
    expect(braked.plan(reading(groups), 60_000).releases).toEqual([
      { group: "rack=9", most: 1, upTo: 0, brake: "PARTIAL" },
      { group: "rack=0", most: 2, upTo: 0, brake: "PARTIAL" },
      { group: "rack=1", most: 2, upTo: 0, brake: "PARTIAL" },
      { group: "rack=2", most: 1, upTo: 0, brake: "PARTIAL" },
    ]);
  });

  it("should release nothing of a group whose brake is FULL or frozen, and of others all", () => {
    const rows = [row("zone=a", { mode: "FULL", size: 10 }), row("zone=b", FROZEN)];
    const groups = { "zone=a": [0, 0, 10, 9], "zone=b": [99, 0, 1, 1], "zone=c": [99, 0, 1, 1] } as const;
    const frozen = planner(rows);
    expect(frozen.plan(reading(groups, { rows }), 600_000).releases).toMatchObject([{ group: "zone=c", most: 1 }]);
    expect([...frozen.states()]).toEqual([
      ["zone=a", "FULL"],
      ["zone=b", "FROZEN"],
      [BRAKE_CLUSTER, "NORMAL"],
      ["zone=c", "NORMAL"],
    ]);
  });

  it("should save up little while a brake is FULL", () => {
    const rows = [row("zone=a", { mode: "FULL", size: 100 })];
    const held = planner(rows);
    held.plan(reading({ "zone=a": [0, 0, 100, 99], "zone=b": [999, 0, 0, 0] }, { rows }), 600_000);
    const { releases } = held.plan(reading({ "zone=a": [1, 0, 99, 99], "zone=b": [999, 0, 0, 0] }, { rows }), 600_001);
    expect(releases).toEqual([{ group: "zone=a", most: 1, upTo: 0, brake: "PARTIAL" }]);
  });

  it("should wait with a group that may be a storm, although no brake is set", () => {
    // Two of the lost nodes may also be counted as silent, so between 4 and 6 nodes are gone.
    const groups = { "zone=a": [8, 4, 2, 2, 2], "zone=b": [99, 0, 0, 0] } as const;
    const { changes, releases } = planner().plan(reading(groups), 1_000);
    expect({ changes, releases }).toEqual({ changes: [], releases: [] });
  });

  it("should count no more unsettled losses than there are losses", () => {
    const groups = { "zone=a": [10, 6, 0, 0, 5], "zone=b": [99, 0, 0, 0] } as const;
    expect(planner().plan(reading(groups), 1_000).changes).toMatchObject([{ group: "zone=a", after: "PARTIAL" }]);
  });
});

describe("BrakePlanner.plan(), changes", () => {
  const STORM = { "zone=a": [10, 6, 0, 0], "zone=b": [99, 0, 0, 0] } as const;

  it("should report the counts that set a brake", () => {
    expect(planner().plan(reading(STORM), 1_000).changes).toEqual([
      {
        ...{ group: "zone=a", before: "NORMAL", after: "PARTIAL", isShown: true, size: 10, windowLoss: 0, order: null },
        counts: { size: 10, silent: 6, lost: 0, unsettled: 0 },
      },
    ]);
  });

  it("should not show the change of a brake that is frozen", () => {
    const rows = [row("zone=a", FROZEN)];
    expect(planner(rows).plan(reading(STORM, { rows }), 1_000).changes).toMatchObject([
      { group: "zone=a", isShown: false },
    ]);
  });

  it.each([
    ["zone=a", ["zone=a"]],
    [BRAKE_CLUSTER, ["zone=a", BRAKE_CLUSTER]],
  ])("should lift by an order for %s the brakes of %j", (group, lifted) => {
    const order = row(group, { orders: 2, followed: 1, orderedLoss: 7, mode: "NORMAL" });
    const held = planner([row("zone=a", { mode: "FULL", size: 10 })]);
    const rows = group === "zone=a" ? [order] : [row("zone=a", { mode: "FULL", size: 10 }), order];
    const { changes, orders } = held.plan(reading({ "zone=a": [0, 0, 10, 9] }, { rows }), 1_000);
    expect(orders).toEqual([order]);
    const ordered = changes.filter((it) => it.order !== null);
    expect(ordered.map((it) => it.group).filter((it) => lifted.includes(it))).toEqual(lifted);
    expect(changes.find((it) => it.group === "zone=a")).toMatchObject({
      ...{ before: "FULL", after: "NORMAL", isShown: true, windowLoss: 7, order },
    });
    expect(held.marks().windows.get("zone=a")).toBe(7);
  });

  it("should not show an order that lifts nothing, and follow none for a group that is held by a freeze", () => {
    const order = row("zone=a", { orders: 1 });
    const calm = reading({ "zone=a": [10, 0, 0, 0] }, { rows: [order] });
    expect(planner().plan(calm, 1_000).changes).toMatchObject([{ after: "NORMAL", isShown: false, order }]);
    for (const rows of [[{ ...order, ...FROZEN }], [order, row(BRAKE_CLUSTER, FROZEN)]]) {
      expect(planner(rows).plan(reading({ "zone=a": [10, 0, 0, 0] }, { rows }), 1_000).changes).toEqual([]);
    }
  });
});

describe("BrakePlanner.plan(), what is forgotten", () => {
  it.each<[string, Partial<BrakeRow>, Counted, readonly string[]]>([
    ["as it would be without", {}, [10, 0, 0, 0], ["zone=a"]],
    ["with an order that was followed", { orders: 2, followed: 2 }, [10, 0, 0, 0], ["zone=a"]],
    ["with an order that is not followed", { orders: 2, followed: 1 }, [10, 0, 0, 0], []],
    ["that is frozen", FROZEN, [10, 0, 0, 0], []],
    ["with losses", {}, [10, 0, 1, 0], []],
    ["with reactions that wait", {}, [10, 0, 0, 1], []],
    ["whose window begins later", { windowLoss: 3 }, [10, 0, 0, 0], []],
    ["that is set", { mode: "PARTIAL", size: 30 }, [10, 0, 20, 0], []],
  ])("should be of a row %s", (_, changes, counted, forgotten) => {
    const rows = [row("zone=a", changes)];
    const groups = { "zone=a": counted, "zone=b": [99, 0, 0, 0] } as const;
    expect(planner(rows).plan(reading(groups, { rows }), 1_000).forgotten).toEqual(forgotten);
  });

  it("should be groups without any nodes, and never the cluster", () => {
    const held = planner([row("zone=a")]);
    held.plan(reading({ "zone=b": [9, 0, 0, 0] }), 1_000);
    expect([...held.states().keys()]).toEqual([BRAKE_CLUSTER, "zone=b"]);
    held.plan(reading({}, { reports: new Map() }), 2_000);
    held.plan(reading({}, { reports: new Map() }), 70_000);
    held.plan(reading({}, { reports: new Map() }), 140_000);
    expect([...held.states().keys()]).toEqual([BRAKE_CLUSTER]);
  });
});

describe("BrakePlanner, limits", () => {
  it("should keep at most the maximum of groups, and evaluate those", () => {
    const many = Array.from({ length: MOST_BRAKE_GROUPS + 5 }, (_, index) => [`zone=${index}`, [9, 0, 0, 0]] as const);
    const held = planner();
    held.plan(reading(Object.fromEntries(many)), 1_000);
    // Expect one more state, that of the cluster's brake.
    expect(held.states().size).toBe(MOST_BRAKE_GROUPS + 1);
    held.plan(reading({ ...Object.fromEntries(many), "zone=0": [9, 9, 0, 0] }), 2_000);
    expect(held.states().get("zone=0")).toBe("FULL");
  });

  it("should have no brake for nodes without a group", () => {
    const held = planner();
    held.plan(reading({ "": [9, 9, 0, 0], "zone=a": [99, 0, 0, 0] }), 1_000);
    expect([...held.states().keys()]).toEqual([BRAKE_CLUSTER, "zone=a"]);
  });
});
