import { Code } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { MembershipState } from "@rollcall/api/rollcall/node/v1/node_pb";
import { createTestDatabase, refusalOf } from "@rollcall/testkit";
import { addNode, addOrchestrator, eventsOf } from "../testing/record.ts";
import { type Rig, startRig } from "../testing/rig.ts";

let rig: Rig;
beforeAll(async () => {
  rig = await startRig(await createTestDatabase());
});
afterAll(() => rig.close());

describe("rejectNode()", () => {
  it.each(["PENDING", "APPROVED"] as const)("should reject a node that is %s", async (state) => {
    const id = `was-${state}`;
    await addNode(rig.store, id, state);
    const { node } = await rig.admin.rejectNode({ node: id, reason: "wrong rack" });
    const circumstances = {
      reason: "OPERATOR_REJECTED",
      message: "wrong rack",
      actor: rig.operator.actor,
    };
    expect(node?.membership).toMatchObject({ state: MembershipState.REJECTED, ...circumstances });
    expect(await eventsOf(rig.store, id)).toMatchObject([
      {
        type: "node.rejected",
        before: { membership: state },
        after: { membership: "REJECTED" },
        ...circumstances,
      },
    ]);
  });

  it("should refuse one that is rejected, and keep the first reason", async () => {
    await addNode(rig.store, "out", "REJECTED");
    const again = rig.admin.rejectNode({ node: "out", reason: "another" });
    expect(await refusalOf(again)).toMatchObject({
      code: Code.FailedPrecondition,
      reason: "NODE_ALREADY_REJECTED",
      message: "node out is already rejected",
    });
    expect(await eventsOf(rig.store, "out")).toEqual([]);
  });

  it("should refuse a live orchestrator, and reject a lost one", async () => {
    await addOrchestrator(rig.store, "control");
    await addOrchestrator(rig.store, "gone", true);
    expect(await refusalOf(rig.admin.rejectNode({ node: "control" }))).toMatchObject({
      code: Code.FailedPrecondition,
      reason: "NODE_IS_ORCHESTRATOR",
      metadata: { node: "control" },
    });
    const { node } = await rig.admin.rejectNode({ node: "gone" });
    expect(node?.membership?.state).toBe(MembershipState.REJECTED);
  });
});
