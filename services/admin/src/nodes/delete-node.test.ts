import { Code } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { getNode, getTombstone } from "@rollcall/store";
import { createTestDatabase, refusalOf } from "@rollcall/testkit";
import { addNode, addOrchestrator, eventsOf } from "../testing/record.ts";
import { type Rig, startRig } from "../testing/rig.ts";

let rig: Rig;
beforeAll(async () => {
  rig = await startRig(await createTestDatabase());
});
afterAll(() => rig.close());

describe("deleteNode()", () => {
  it.each(["PENDING", "APPROVED", "REJECTED"] as const)(
    "should remove a node that is %s and leave a tombstone",
    async (state) => {
      const id = `was-${state}`;
      await addNode(rig.store, id, state);
      const { node } = await rig.admin.deleteNode({ node: id, reason: "sold" });
      expect(node).toMatchObject({ id, keyFingerprint: `SHA256:${id}` });
      expect(await getNode(rig.store.db, id)).toBeNull();
      const circumstances = {
        reason: "OPERATOR_DELETED",
        message: "sold",
        actor: rig.operator.actor,
      };
      expect(await getTombstone(rig.store.db, id)).toMatchObject({
        ...circumstances,
        lastState: { membership: { state } },
      });
      expect(await eventsOf(rig.store, id)).toMatchObject([
        { type: "node.deleted", before: { membership: state }, after: null, ...circumstances },
      ]);
    },
  );

  it("should report that the node does not exist when it is deleted again", async () => {
    await addNode(rig.store, "once");
    await rig.admin.deleteNode({ node: "once" });
    expect(await refusalOf(rig.admin.deleteNode({ node: "once" }))).toMatchObject({
      code: Code.NotFound,
      reason: "NODE_NOT_FOUND",
    });
  });

  it("should refuse a live orchestrator, and remove a lost one", async () => {
    await addOrchestrator(rig.store, "control");
    await addOrchestrator(rig.store, "gone", true);
    expect(await refusalOf(rig.admin.deleteNode({ node: "control" }))).toMatchObject({
      code: Code.FailedPrecondition,
      reason: "NODE_IS_ORCHESTRATOR",
    });
    await rig.admin.deleteNode({ node: "gone" });
    expect(await getNode(rig.store.db, "gone")).toBeNull();
  });
});
