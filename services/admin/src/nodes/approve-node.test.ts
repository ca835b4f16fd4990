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

describe("approveNode()", () => {
  it.each(["PENDING", "REJECTED"] as const)("should approve a node that is %s", async (state) => {
    const id = `was-${state}`;
    await addNode(rig.store, id, state);
    const { node } = await rig.admin.approveNode({ node: id, reason: "looks fine" });
    expect(node).toMatchObject({ id });
    const circumstances = {
      reason: "OPERATOR_APPROVED",
      message: "looks fine",
      actor: rig.operator.actor,
    };
    expect(node?.membership).toMatchObject({ state: MembershipState.APPROVED, ...circumstances });
    expect(await eventsOf(rig.store, id)).toMatchObject([
      {
        type: "node.approved",
        before: { membership: state },
        after: { membership: "APPROVED" },
        ...circumstances,
      },
    ]);
  });

  it("should refuse one that is approved", async () => {
    await addNode(rig.store, "done", "APPROVED");
    expect(await refusalOf(rig.admin.approveNode({ node: "done" }))).toMatchObject({
      code: Code.FailedPrecondition,
      reason: "NODE_ALREADY_APPROVED",
      message: "node done is already approved",
      metadata: { node: "done" },
    });
    expect(await eventsOf(rig.store, "done")).toEqual([]);
  });

  it("should refuse an orchestrator: they are always approved", async () => {
    await addOrchestrator(rig.store, "control");
    expect(await refusalOf(rig.admin.approveNode({ node: "control" }))).toMatchObject({
      reason: "NODE_ALREADY_APPROVED",
    });
  });

  it("should carry out one of two approvals at once", async () => {
    for (let round = 0; round < 20; round += 1) {
      const id = `twice-${round}`;
      await addNode(rig.store, id);
      const calls = [1, 2].map(() => rig.admin.approveNode({ node: id }));
      const settled = await Promise.allSettled(calls);
      const refused = settled.findIndex(({ status }) => status === "rejected");
      expect(settled.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected"]);
      expect(await refusalOf(calls[refused] ?? Promise.resolve())).toMatchObject({
        code: Code.FailedPrecondition,
        reason: "NODE_ALREADY_APPROVED",
      });
      expect(await eventsOf(rig.store, id)).toHaveLength(1);
    }
  });
});
