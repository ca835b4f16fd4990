import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { HealthState, HoldKind, MembershipState, SchedulingState } from "@rollcall/api/rollcall/node/v1/node_pb";
import { createTestDatabase, saveHolds, saveMark } from "@rollcall/testkit";
import { observe, operate } from "../testing/operator.ts";
import { addOrchestrator } from "../testing/record.ts";
import { type Rig, startRig } from "../testing/rig.ts";
import { TestNode } from "../testing/test-node.ts";

let rig: Rig;
beforeAll(async () => {
  rig = await startRig(await createTestDatabase());
});
afterAll(() => rig.close());

const GIB = 2n ** 30n;

describe("getClusterSummary()", () => {
  it("should count nothing in an empty cluster", async () => {
    expect(await rig.registry.getClusterSummary({})).toMatchObject({
      clusterId: rig.store.clusterId(),
      compute: { total: 0, connected: 0 },
      orchestrators: { total: 0, connected: 0 },
      states: [],
      mayTakeWork: 0,
      total: { cores: 0n, memoryBytes: 0n, diskBytes: 0n, gpus: 0 },
    });
  });

  it("should count nodes by state and add up their resources", async () => {
    const ids = ["ready", "cordoned", "marked", "silent", "rejected"];
    const info = {
      cpu: { threads: 4 },
      memoryBytes: 8n * GIB,
      diskBytes: 2n ** 53n - 1n,
      gpus: [{ name: "H100", uuid: "GPU-1" }],
    };
    await Promise.all(ids.map((id) => new TestNode(id).register(rig.registry, info)));
    await observe(rig.store, ["ready", "cordoned", "marked"], "HEALTHY");
    await operate(rig.store, "rejected", "reject");
    await rig.store.transaction(async (tx) => {
      const by = { sinceMs: 1, message: "", actor: "token:x" };
      await saveHolds(tx, "cordoned", [{ kind: "OPERATOR", ...by }]);
      await saveMark(tx, "marked", by);
    });
    await addOrchestrator(rig.store, "control");
    const summary = await rig.registry.getClusterSummary({});
    expect(summary).toMatchObject({
      orchestrators: { total: 1, connected: 1 },
      compute: { total: 5, connected: 3 },
      mayTakeWork: 1,
      holds: [{ kind: HoldKind.OPERATOR, count: 1 }],
      total: { cores: 16n, memoryBytes: 32n * GIB, diskBytes: 4n * (2n ** 53n - 1n), gpus: 4 },
      available: { cores: 4n, memoryBytes: 8n * GIB, diskBytes: 2n ** 53n - 1n, gpus: 1 },
    });
    const { APPROVED, REJECTED } = MembershipState;
    const { HEALTHY, UNHEALTHY, UNKNOWN } = HealthState;
    const { ELIGIBLE, INELIGIBLE } = SchedulingState;
    const states = summary.states.map(({ membership, health, scheduling, count }) => {
      return [membership, health, scheduling, count];
    });
    expect(states).toEqual([
      [APPROVED, HEALTHY, ELIGIBLE, 1],
      [APPROVED, HEALTHY, INELIGIBLE, 1],
      [APPROVED, UNHEALTHY, ELIGIBLE, 1],
      [APPROVED, UNKNOWN, ELIGIBLE, 1],
      [REJECTED, UNKNOWN, ELIGIBLE, 1],
    ]);
  });

  it("should count labels when they are asked for", async () => {
    await new TestNode("labelled").register(rig.registry, { labels: { zone: "a" } });
    expect((await rig.registry.getClusterSummary({})).labels).toEqual([]);
    const { labels } = await rig.registry.getClusterSummary({ includeLabels: true });
    expect(labels.map(({ key, value, count }) => [key, value, count])).toEqual([["zone", "a", 1]]);
  });
});
