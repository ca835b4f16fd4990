import { describe, expect, it } from "@jest/globals";
import { BRAKE_CLUSTER, type BrakeReading, type BrakeRow } from "@rollcall/domain";
import { createMetrics, silentLogger } from "@rollcall/process";
import { ManualClock, settle } from "@rollcall/testkit/time";
import { BrakeDecider } from "./brake-decider.ts";
import type { BrakeStore } from "./brake-store.ts";

const GROUPS = ["zone=a", "zone=b", "zone=c"];
const ORDER = { orders: 1, followed: 0, orderedLoss: 9, orderedBy: "token:one", orderReason: "moved" };
const FROZEN = { frozen: { sinceMs: 0, actor: "token:other", reason: "hands off" } };

function rowOf(group: string, changes: Partial<BrakeRow> = {}): BrakeRow {
  return {
    ...{ group, mode: "FULL", sinceMs: 0, size: 10, windowLoss: 0, frozen: null, orders: 0, followed: 0 },
    ...{ orderedLoss: 0, orderedBy: "", orderReason: "" },
    ...changes,
  };
}

/** Scan once with these brakes, while every group has pending reactions. Returns the groups that were released. */
async function releasedGroups(rows: readonly BrakeRow[]): Promise<readonly string[]> {
  const released: string[] = [];
  const losses = GROUPS.map((group) => ({ group, lost: 10, lostOfCluster: 10, unsettled: 0, pending: 10 }));
  const reading: BrakeReading = { reports: new Map(), losses, lastLoss: 30, rows };
  const record: BrakeStore = {
    list: async () => rows,
    lossBefore: async () => 0,
    read: async () => reading,
    saveChanges: async () => {},
    forget: async () => {},
    release: async (releases) => {
      released.push(...releases.map(({ group }) => group));
      return [];
    },
    releaseOrdered: async ({ group }) => {
      released.push(group);
      return 10;
    },
    saveFollowed: async () => {},
  };
  const clock = new ManualClock();
  const decider = new BrakeDecider({ record, clock, log: silentLogger, metrics: createMetrics({ defaults: false }) });
  const ending = new AbortController();
  const running = decider.run(ending.signal, () => {});
  await settle();
  ending.abort(new Error("ended"));
  await expect(running).rejects.toThrow("ended");
  return [...new Set(released)].sort();
}

describe("an order to release reactions", () => {
  it.each<[string, string, readonly string[], readonly string[]]>([
    ["the cluster", BRAKE_CLUSTER, [], GROUPS],
    ["the cluster, but no group that an operator froze", BRAKE_CLUSTER, ["zone=a"], ["zone=b", "zone=c"]],
    ["the cluster, but none of several frozen groups", BRAKE_CLUSTER, ["zone=a", "zone=c"], ["zone=b"]],
    ["a group, and no other", "zone=b", [], ["zone=b"]],
    ["a group, while another one is frozen", "zone=b", ["zone=a"], ["zone=b"]],
    ["a group that was frozen again", "zone=b", ["zone=b"], []],
    ["a cluster that was frozen again", BRAKE_CLUSTER, [BRAKE_CLUSTER], []],
    ["a group of a cluster that was frozen since", "zone=b", [BRAKE_CLUSTER], []],
  ])("should release %s", async (_, ordered, frozen, expected) => {
    const rows = [BRAKE_CLUSTER, ...GROUPS].map((group) =>
      rowOf(group, { ...(group === ordered ? ORDER : {}), ...(frozen.includes(group) ? FROZEN : {}) }),
    );
    expect(await releasedGroups(rows)).toEqual(expected);
  });
});
