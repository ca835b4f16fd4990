import { Code } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { HoldKind, SchedulingState } from "@rollcall/api/rollcall/node/v1/node_pb";
import { createTestDatabase, refusalOf } from "@rollcall/testkit";
import { addNode, addOrchestrator, eventsOf, observe } from "../testing/record.ts";
import { type Rig, startRig } from "../testing/rig.ts";

let rig: Rig;
beforeAll(async () => {
  rig = await startRig(await createTestDatabase());
});
afterAll(() => rig.close());

describe("cordonNode()", () => {
  it("should admit no new work, and report who wants that and why", async () => {
    await addNode(rig.store, "busy", "APPROVED");
    await observe(rig.store, "busy", "HEALTHY");
    const { node } = await rig.admin.cordonNode({ node: "busy", reason: "new disk" });
    const { actor } = rig.operator;
    expect(node).toMatchObject({ mayTakeWork: false });
    expect(node?.scheduling).toMatchObject({
      state: SchedulingState.INELIGIBLE,
      reason: "OPERATOR_CORDONED",
      message: "new disk",
      actor,
      holds: [{ kind: HoldKind.OPERATOR, message: "new disk", actor }],
    });
    expect((await eventsOf(rig.store, "busy")).at(-1)).toMatchObject({
      type: "node.scheduling.changed",
      reason: "OPERATOR_CORDONED",
      message: "new disk",
      actor,
      before: { scheduling: "ELIGIBLE", holds: [] },
      after: { scheduling: "INELIGIBLE", holds: ["OPERATOR"] },
    });
  });

  it.each(["PENDING", "REJECTED"] as const)("should cordon a node that is %s", async (state) => {
    await addNode(rig.store, `is-${state}`, state);
    const { node } = await rig.admin.cordonNode({ node: `is-${state}` });
    expect(node?.scheduling?.state).toBe(SchedulingState.INELIGIBLE);
  });

  it("should refuse one that is cordoned", async () => {
    await addNode(rig.store, "held");
    await rig.admin.cordonNode({ node: "held", reason: "first" });
    expect(await refusalOf(rig.admin.cordonNode({ node: "held", reason: "x" }))).toMatchObject({
      code: Code.FailedPrecondition,
      reason: "NODE_ALREADY_CORDONED",
      message: "node held is already cordoned",
    });
    expect(await eventsOf(rig.store, "held")).toHaveLength(1);
  });

  it("should refuse an orchestrator, dead or alive", async () => {
    await addOrchestrator(rig.store, "control");
    await addOrchestrator(rig.store, "gone", true);
    for (const node of ["control", "gone"]) {
      expect(await refusalOf(rig.admin.cordonNode({ node }))).toMatchObject({
        code: Code.FailedPrecondition,
        reason: "NODE_IS_ORCHESTRATOR",
      });
    }
  });
});
