import type { MessageInitShape } from "@bufbuild/protobuf";
import { Code } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import type { NodeInfoSchema } from "@rollcall/api/rollcall/node/v1/node_pb";
import { RegistryService } from "@rollcall/api/rollcall/registry/v1/registry_pb";
import { createTestDatabase, refusalOf } from "@rollcall/testkit";
import { operate } from "../testing/operator.ts";
import { addOrchestrator, eventsOf } from "../testing/record.ts";
import { type Rig, startRig } from "../testing/rig.ts";
import { INFO, TestNode } from "../testing/test-node.ts";

let rig: Rig;
beforeAll(async () => {
  rig = await startRig(await createTestDatabase());
});
afterAll(() => rig.close());

const METHOD = RegistryService.method.updateNodeInfo;

async function update(node: TestNode, info: MessageInitShape<typeof NodeInfoSchema> = INFO) {
  const proof = await node.prove(rig.registry, METHOD);
  return rig.registry.updateNodeInfo({ nodeId: node.id, proof, info });
}

async function registered(id: string): Promise<TestNode> {
  const node = new TestNode(id);
  await node.register(rig.registry);
  return node;
}

describe("updateNodeInfo()", () => {
  it("should replace what the node reports about itself", async () => {
    const node = await registered("news");
    const info = { hostname: "renamed", labels: { zone: "b" } };
    expect(await update(node, info)).toMatchObject({ changed: true });
    const { node: after } = await rig.registry.getNode({ node: "news" });
    expect(after?.info).toMatchObject({ hostname: "renamed" });
    expect([after?.info?.memoryBytes, after?.info?.cpu]).toEqual([undefined, undefined]);
    expect((await eventsOf(rig.store, "news")).map(({ type, actor }) => [type, actor])).toEqual([
      ["node.registered", "node:news"],
      ["node.info.changed", "node:news"],
      ["node.labels.changed", "node:news"],
    ]);
  });

  it("should write nothing when the report is unchanged", async () => {
    const node = await registered("no-news");
    expect(await update(node)).toMatchObject({ changed: false });
    expect(await eventsOf(rig.store, "no-news")).toHaveLength(1);
  });

  it("should ask an unknown node to register", async () => {
    expect(await refusalOf(update(new TestNode("nobody")))).toMatchObject({
      code: Code.NotFound,
      reason: "NODE_NOT_REGISTERED",
      metadata: { node: "nobody" },
    });
  });

  it("should ignore a rejected node", async () => {
    const node = await registered("silenced");
    await operate(rig.store, "silenced", "reject", "too loud");
    expect(await refusalOf(update(node, { hostname: "x" }))).toMatchObject({
      code: Code.PermissionDenied,
      reason: "NODE_REJECTED",
      message: "node has been rejected: too loud",
    });
  });

  it("should refuse a key other than the stored one", async () => {
    await registered("owned");
    expect(await refusalOf(update(new TestNode("owned"), { hostname: "x" }))).toMatchObject({
      code: Code.Unauthenticated,
      reason: "PROOF_INVALID",
    });
    const { node } = await rig.registry.getNode({ node: "owned" });
    expect(node?.info?.hostname).toBe("machine");
  });

  it("should refuse a call of one node for another", async () => {
    const node = await registered("speaker");
    await registered("other");
    const proof = await node.prove(rig.registry, METHOD, "other");
    const call = rig.registry.updateNodeInfo({ nodeId: "other", proof, info: INFO });
    expect(await refusalOf(call)).toMatchObject({ reason: "PROOF_INVALID" });
  });

  it("should refuse a proof that was used before", async () => {
    const node = await registered("repeater");
    const request = { nodeId: node.id, proof: await node.prove(rig.registry, METHOD), info: INFO };
    await rig.registry.updateNodeInfo(request);
    expect(await refusalOf(rig.registry.updateNodeInfo(request))).toMatchObject({
      code: Code.Unauthenticated,
      reason: "CHALLENGE_INVALID",
    });
  });

  it("should refuse a call for a control-plane process", async () => {
    await addOrchestrator(rig.store, "control");
    expect(await refusalOf(update(new TestNode("control")))).toMatchObject({
      code: Code.FailedPrecondition,
      reason: "NODE_IS_ORCHESTRATOR",
    });
  });

  it("should check id, labels and fields as registration does", async () => {
    const node = await registered("checked");
    const labels = { "rollcall.io/x": "y" };
    expect(await refusalOf(update(node, { labels }))).toMatchObject({ reason: "INVALID_LABEL" });
    expect(await refusalOf(update(new TestNode("a b")))).toMatchObject({
      reason: "INVALID_NODE_ID",
    });
    expect(await refusalOf(rig.registry.updateNodeInfo({ nodeId: "checked" }))).toMatchObject({
      reason: "INVALID_REQUEST",
    });
  });
});
