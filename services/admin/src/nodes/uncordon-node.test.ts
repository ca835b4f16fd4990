import { Code } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { SchedulingState } from "@rollcall/api/rollcall/node/v1/node_pb";
import { createTestDatabase, refusalOf } from "@rollcall/testkit";
import { addNode, eventsOf, observe } from "../testing/record.ts";
import { type Rig, startRig } from "../testing/rig.ts";

let rig: Rig;
beforeAll(async () => {
  rig = await startRig(await createTestDatabase());
});
afterAll(() => rig.close());

describe("uncordonNode()", () => {
  it("should lift the operator's hold", async () => {
    await addNode(rig.store, "freed", "APPROVED");
    await observe(rig.store, "freed", "HEALTHY");
    await rig.admin.cordonNode({ node: "freed" });
    const { node } = await rig.admin.uncordonNode({ node: "freed", reason: "disk is in" });
    expect(node).toMatchObject({ mayTakeWork: true });
    expect(node?.scheduling).toMatchObject({ state: SchedulingState.ELIGIBLE, holds: [] });
    expect((await eventsOf(rig.store, "freed")).at(-1)).toMatchObject({
      type: "node.scheduling.changed",
      message: "disk is in",
      actor: rig.operator.actor,
      before: { scheduling: "INELIGIBLE", holds: ["OPERATOR"] },
      after: { scheduling: "ELIGIBLE", holds: [] },
    });
  });

  it("should refuse one that is not cordoned", async () => {
    await addNode(rig.store, "free");
    expect(await refusalOf(rig.admin.uncordonNode({ node: "free" }))).toMatchObject({
      code: Code.FailedPrecondition,
      reason: "NODE_NOT_CORDONED",
      message: "node free is not cordoned",
    });
  });
});
