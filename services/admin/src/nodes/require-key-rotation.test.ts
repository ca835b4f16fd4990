import { Code } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { createTestDatabase, refusalOf } from "@rollcall/testkit";
import { addNode, addOrchestrator, eventsOf } from "../testing/record.ts";
import { type Rig, startRig } from "../testing/rig.ts";

let rig: Rig;
beforeAll(async () => {
  rig = await startRig(await createTestDatabase());
});
afterAll(() => rig.close());

describe("requireKeyRotation()", () => {
  it("should show since when it is wanted, and log it", async () => {
    await addNode(rig.store, "leaky", "APPROVED");
    const { node } = await rig.admin.requireKeyRotation({ node: "leaky", reason: "disk was sold" });
    expect(node?.keyRotationRequiredSince).toBeDefined();
    expect(node?.keyFingerprint).toBe("SHA256:leaky");
    expect((await eventsOf(rig.store, "leaky")).at(-1)).toMatchObject({
      type: "node.key.rotation.required",
      actor: rig.operator.actor,
      message: "disk was sold",
      after: { keyFingerprint: "SHA256:leaky" },
    });
  });

  it("should accept a selection, and report each node's outcome", async () => {
    for (const id of ["many1", "many2"]) await addNode(rig.store, id, "APPROVED");
    await rig.admin.requireKeyRotation({ node: "many1" });
    const answer = await rig.admin.requireKeyRotation({
      selector: { nodes: ["many1", "many2"] },
    });
    expect(answer.outcomes.map(({ nodeId, result }) => [nodeId, result.case])).toEqual([
      ["many1", "refusal"],
      ["many2", "node"],
    ]);
  });

  it("should refuse a node that was already marked, and an orchestrator", async () => {
    await addNode(rig.store, "told", "APPROVED");
    await rig.admin.requireKeyRotation({ node: "told" });
    expect(await refusalOf(rig.admin.requireKeyRotation({ node: "told" }))).toMatchObject({
      code: Code.FailedPrecondition,
      reason: "KEY_ROTATION_ALREADY_REQUIRED",
      metadata: { node: "told" },
    });
    await addOrchestrator(rig.store, "hub");
    expect(await refusalOf(rig.admin.requireKeyRotation({ node: "hub" }))).toMatchObject({
      reason: "NODE_IS_ORCHESTRATOR",
    });
  });
});
