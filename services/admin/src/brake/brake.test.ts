import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { Code } from "@connectrpc/connect";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "@jest/globals";
import { BrakeService, BrakeState } from "@rollcall/api/rollcall/admin/v1/brake_pb";
import type { BrakeSums } from "@rollcall/domain";
import { listAudit, renewLease, type Store, takeLease } from "@rollcall/store";
import { createTestDatabase, refusalOf } from "@rollcall/testkit";
import { addNode, eventsOf } from "../testing/record.ts";
import { type Rig, startRig } from "../testing/rig.ts";

let rig: Rig;
let store: Store;

beforeAll(async () => {
  rig = await startRig(await createTestDatabase());
  ({ store } = rig);
  const groups = new Map([
    ["cluster", { healthy: 30, silent: 4 }],
    ["zone=a", { healthy: 10, silent: 4 }],
    ["zone=b", { healthy: 20, silent: 0 }],
  ]);
  await report("r1", { sequence: 7, groups });
  await report("r2", { sequence: 3, groups: new Map([["cluster", { healthy: 2, silent: 0 }]]) });
});

afterEach(async () => {
  await store.db.deleteFrom("brakes").execute();
});

afterAll(() => rig.close());

async function report(instance: string, brake: BrakeSums): Promise<void> {
  await takeLease(store.db, { name: instance, instance, service: "health", address: "" });
  await renewLease(store.db, instance, instance, { sessions: 0, brake });
}

const operator = () => rig.clientOf(BrakeService, rig.operator.text);

async function brakeOf(group: string) {
  const { brakes } = await operator().getBrake({});
  return brakes.find((brake) => brake.group === group);
}

const ordersOf = (group: string) =>
  store.db.selectFrom("brakes").select(["orders", "ordered_by"]).where("group_name", "=", group).executeTakeFirst();

describe("GetBrake", () => {
  it("should return the counts of all replicas, the cluster first", async () => {
    const { brakes, decider } = await operator().getBrake({});
    expect(brakes.map(({ group, size, silent }) => [group, size, silent])).toEqual([
      ["cluster", 32, 4],
      ["zone=a", 10, 4],
      ["zone=b", 20, 0],
    ]);
    expect(brakes.every(({ state }) => state === BrakeState.NORMAL)).toBe(true);
    expect(decider).toBe("");
  });
});

describe("GetBrake in a storm", () => {
  const setBrake = (group: string, mode: "NORMAL" | "PARTIAL" | "FULL", size: number) =>
    store.db.insertInto("brakes").values({ group_name: group, mode, size, window_loss: 0n }).execute();

  it("should report the planner's release rate, and how much the cluster allows", async () => {
    await setBrake("zone=a", "PARTIAL", 5);
    expect(await brakeOf("zone=a")).toMatchObject({
      ...{ releasedPerMinute: 1, limitedByCluster: false },
      releaseInterval: durationFromMs(120_000),
    });
    await setBrake("cluster", "FULL", 40);
    const held = await brakeOf("zone=a");
    expect(held).toMatchObject({ releasedPerMinute: 0, limitedByCluster: true });
    expect(held?.releaseInterval).toBeUndefined();
    expect(await brakeOf("cluster")).toMatchObject({ limitedByCluster: false });
  });

  it("should never count more nodes as silent and lost than exist", async () => {
    await setBrake("zone=a", "PARTIAL", 5);
    const ids = Array.from({ length: 9 }, (_, index) => `lost-${index}`);
    for (const [index, id] of ids.entries()) {
      await addNode(store, id);
      const loss = { loss: BigInt(index + 1), loss_group: "zone=a", lost_since: new Date() };
      await store.db
        .updateTable("node_sessions")
        .set({ health: "UNHEALTHY", reaction: "PENDING", ...loss })
        .where("node_id", "=", id)
        .execute();
    }
    // Ten nodes are still reported as HEALTHY, four of them silent; nine have been lost since.
    const brake = await brakeOf("zone=a");
    expect(brake).toMatchObject({ size: 15, lost: 9, silent: 4, pending: 9 });
    await store.db.deleteFrom("nodes").where("id", "like", "lost-%").execute();
  });
});

describe("FreezeReactions", () => {
  it("should freeze a group with an event and an audit row, once for each request id", async () => {
    const request = { group: "zone=a", reason: "new switch", requestId: "q1" };
    const { brake } = await operator().freezeReactions(request);
    const { actor } = rig.operator;
    expect(brake).toMatchObject({ frozenBy: actor, frozenReason: "new switch", group: "zone=a" });
    expect(brake).toMatchObject({
      state: BrakeState.FROZEN,
      automaticState: BrakeState.NORMAL,
    });
    expect((await operator().freezeReactions(request)).brake).toEqual(brake);
    expect(await eventsOf(store, "zone=a")).toMatchObject([
      {
        ...{ type: "brake.changed", actor, reason: "OPERATOR_FROZEN", message: "new switch" },
        before: { brake: "NORMAL" },
        after: { brake: "FROZEN" },
      },
    ]);
    const rows = await listAudit(store.db, { limit: 10, newestFirst: true, target: "zone=a" });
    expect(rows).toMatchObject([{ actor, reason: "new switch", outcome: "OK" }]);
  });

  it("should refuse an unknown group, and one that is frozen", async () => {
    expect(await refusalOf(operator().freezeReactions({ group: "zone=x" }))).toMatchObject({
      code: Code.NotFound,
      reason: "BRAKE_GROUP_NOT_FOUND",
      metadata: { group: "zone=x", groups: "cluster, zone=a, zone=b" },
    });
    await operator().freezeReactions({});
    expect(await refusalOf(operator().freezeReactions({ group: "cluster" }))).toMatchObject({
      code: Code.FailedPrecondition,
      reason: "BRAKE_ALREADY_FROZEN",
      metadata: { group: "cluster", actor: rig.operator.actor },
    });
  });
});

describe("ReleaseReactions", () => {
  it("should lift a freeze, and refuse when there is none", async () => {
    await operator().freezeReactions({ group: "zone=b" });
    const { brake } = await operator().releaseReactions({ group: "zone=b", reason: "done" });
    expect(brake).toMatchObject({ state: BrakeState.NORMAL, frozenBy: "" });
    expect((await eventsOf(store, "zone=b")).at(-1)).toMatchObject({
      ...{ type: "brake.changed", reason: "OPERATOR_RELEASED", message: "done" },
      before: { brake: "FROZEN" },
      after: { brake: "NORMAL" },
    });
    expect(await refusalOf(operator().releaseReactions({ group: "zone=b" }))).toMatchObject({
      code: Code.FailedPrecondition,
      reason: "BRAKE_NOT_FROZEN",
    });
    expect((await brakeOf("zone=b"))?.state).toBe(BrakeState.NORMAL);
  });

  it("should request an immediate release of everything, but not during a freeze of the cluster", async () => {
    await operator().releaseReactions({ group: "zone=a", now: true });
    expect(await ordersOf("zone=a")).toEqual({ orders: 1, ordered_by: rig.operator.actor });
    await operator().freezeReactions({});
    const again = operator().releaseReactions({ group: "zone=a", now: true });
    expect(await refusalOf(again)).toMatchObject({
      code: Code.FailedPrecondition,
      reason: "BRAKE_CLUSTER_FROZEN",
      metadata: { group: "zone=a" },
    });
    await operator().releaseReactions({ now: true });
    expect(await ordersOf("cluster")).toMatchObject({ orders: 1 });
    expect((await brakeOf("cluster"))?.state).toBe(BrakeState.NORMAL);
  });
});
