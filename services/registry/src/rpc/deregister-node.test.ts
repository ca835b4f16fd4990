import { Code } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { RegistryService } from "@rollcall/api/rollcall/registry/v1/registry_pb";
import { getNode, getTombstone } from "@rollcall/store";
import { createTestDatabase, refusalOf } from "@rollcall/testkit";
import { operate } from "../testing/operator.ts";
import { addOrchestrator, eventsOf } from "../testing/record.ts";
import { type Rig, startRig } from "../testing/rig.ts";
import { TestNode } from "../testing/test-node.ts";

let rig: Rig;
let manual: Rig;
beforeAll(async () => {
  rig = await startRig(await createTestDatabase());
  const config = { "Orchestrator.NodeManager.ManualApproval": true };
  manual = await startRig({ store: rig.store }, { config });
});
afterAll(async () => {
  await manual.close();
  await rig.close();
});

const METHOD = RegistryService.method.deregisterNode;

async function deregister(node: TestNode, reason = "") {
  const proof = await node.prove(rig.registry, METHOD);
  return rig.registry.deregisterNode({ nodeId: node.id, proof, reason });
}

describe("deregisterNode()", () => {
  it.each(["auto", "manual"] as const)("should remove a node (%s approval)", async (approval) => {
    const node = new TestNode(`leaver-${approval}`);
    await node.register((approval === "auto" ? rig : manual).registry);
    await deregister(node, "sold");
    expect(await getNode(rig.store.db, node.id)).toBeNull();
    const by = { actor: `node:${node.id}`, reason: "AGENT_DEREGISTERED", message: "sold" };
    expect(await getTombstone(rig.store.db, node.id)).toMatchObject(by);
    const before = { membership: approval === "auto" ? "APPROVED" : "PENDING" };
    expect((await eventsOf(rig.store, node.id)).at(-1)).toMatchObject({
      type: "node.deregistered",
      before,
      after: null,
      ...by,
    });
    expect(await node.register(rig.registry)).toMatchObject({ created: true });
  });

  it("should not let a rejected node get rid of its rejection", async () => {
    const node = new TestNode("launderer");
    await node.register(rig.registry);
    await operate(rig.store, "launderer", "reject", "stolen");
    expect(await refusalOf(deregister(node))).toMatchObject({
      code: Code.PermissionDenied,
      reason: "NODE_REJECTED",
      message: "node has been rejected: stolen",
    });
    expect((await getNode(rig.store.db, "launderer"))?.membership.state).toBe("REJECTED");
  });

  it("should report that a node does not exist", async () => {
    expect(await refusalOf(deregister(new TestNode("nobody")))).toMatchObject({
      code: Code.NotFound,
      reason: "NODE_NOT_FOUND",
      metadata: { node: "nobody" },
    });
  });

  it("should refuse a key other than the stored one", async () => {
    await new TestNode("kept").register(rig.registry);
    expect(await refusalOf(deregister(new TestNode("kept")))).toMatchObject({
      code: Code.Unauthenticated,
      reason: "PROOF_INVALID",
    });
    expect(await getNode(rig.store.db, "kept")).not.toBeNull();
  });

  it("should refuse a proof that was made to register, and one that was used", async () => {
    const node = new TestNode("mixed");
    await node.register(rig.registry);
    const proof = await node.prove(rig.registry);
    const crossed = rig.registry.deregisterNode({ nodeId: node.id, proof });
    expect(await refusalOf(crossed)).toMatchObject({ reason: "PROOF_INVALID" });
    const own = await node.prove(rig.registry, METHOD);
    await rig.registry.deregisterNode({ nodeId: node.id, proof: own });
    await node.register(rig.registry);
    const replayed = rig.registry.deregisterNode({ nodeId: node.id, proof: own });
    expect(await refusalOf(replayed)).toMatchObject({ reason: "CHALLENGE_INVALID" });
  });

  it("should refuse to remove a control-plane process", async () => {
    await addOrchestrator(rig.store, "control");
    expect(await refusalOf(deregister(new TestNode("control")))).toMatchObject({
      reason: "NODE_IS_ORCHESTRATOR",
    });
  });

  it("should refuse bad fields", async () => {
    expect(await refusalOf(rig.registry.deregisterNode({ nodeId: "x" }))).toMatchObject({
      reason: "INVALID_REQUEST",
      violations: [{ field: "proof" }],
    });
    expect(await refusalOf(deregister(new TestNode("")))).toMatchObject({
      reason: "INVALID_NODE_ID",
    });
    expect(await refusalOf(deregister(new TestNode("x"), "a\0b"))).toMatchObject({
      reason: "INVALID_REQUEST",
      violations: [{ field: "reason" }],
    });
  });
});
