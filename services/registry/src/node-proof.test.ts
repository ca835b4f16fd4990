import { Code } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { RegistryService } from "@rollcall/api/rollcall/registry/v1/registry_pb";
import { pruneChallenges } from "@rollcall/store";
import { createTestDatabase, refusalOf } from "@rollcall/testkit";
import { operate } from "./testing/operator.ts";
import { type Rig, startRig } from "./testing/rig.ts";
import { TestNode } from "./testing/test-node.ts";

let rig: Rig;
beforeAll(async () => {
  rig = await startRig(await createTestDatabase());
});
afterAll(() => rig.close());

describe("the proof of registerNode()", () => {
  it("should refuse a proof of another key", async () => {
    const request = await new TestNode("victim").joining(rig.registry);
    const { publicKey } = new TestNode("victim").keyPair;
    expect(await refusalOf(rig.registry.registerNode({ ...request, publicKey }))).toMatchObject({
      code: Code.Unauthenticated,
      reason: "PROOF_INVALID",
      metadata: { node: "victim" },
    });
  });

  it("should refuse a proof for another node", async () => {
    const node = new TestNode("proven");
    const request = await node.joining(rig.registry);
    const other = rig.registry.registerNode({ ...request, nodeId: "another" });
    expect(await refusalOf(other)).toMatchObject({ reason: "PROOF_INVALID" });
  });

  it("should refuse a proof for another method", async () => {
    const node = new TestNode("crossed");
    const request = await node.joining(rig.registry);
    const proof = await node.prove(rig.registry, RegistryService.method.deregisterNode);
    expect(await refusalOf(rig.registry.registerNode({ ...request, proof }))).toMatchObject({
      reason: "PROOF_INVALID",
    });
  });

  it("should refuse a proof for another cluster", async () => {
    const node = new TestNode("unknown");
    const request = await node.joining(rig.registry);
    const { nonce } = await rig.registry.createChallenge({});
    const challenge = { nonce, clusterId: "another-cluster" };
    const signature = node.sign(RegistryService.method.registerNode, challenge);
    const proof = { nonce, signature };
    expect(await refusalOf(rig.registry.registerNode({ ...request, proof }))).toMatchObject({
      reason: "PROOF_INVALID",
    });
  });

  it("should refuse a key that is not on the curve", async () => {
    const request = await new TestNode("crooked").joining(rig.registry);
    // The key is invalid, because the curve has no point with y = 2.
    const publicKey = new Uint8Array(32).fill(2, 0, 1);
    expect(await refusalOf(rig.registry.registerNode({ ...request, publicKey }))).toMatchObject({
      reason: "PROOF_INVALID",
    });
  });

  it("should refuse a proof that was used before, even if it was refused then", async () => {
    const node = new TestNode("replayed");
    const request = await node.joining(rig.registry);
    await rig.registry.registerNode(request);
    const replayed = { code: Code.Unauthenticated, reason: "CHALLENGE_INVALID" };
    expect(await refusalOf(rig.registry.registerNode(request))).toMatchObject(replayed);
    await operate(rig.store, "replayed", "reject");
    const second = await node.joining(rig.registry);
    expect(await refusalOf(rig.registry.registerNode(second))).toMatchObject({
      reason: "NODE_REJECTED",
    });
    await operate(rig.store, "replayed", "approve");
    expect(await refusalOf(rig.registry.registerNode(second))).toMatchObject(replayed);
  });

  it("should accept one of many concurrent requests with the same proof", async () => {
    const request = await new TestNode("echo").joining(rig.registry);
    const calls = Array.from({ length: 8 }, () => rig.registry.registerNode(request));
    const outcomes = await Promise.allSettled(calls);
    expect(outcomes.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
  });

  it("should refuse a nonce that another cluster made", async () => {
    const node = new TestNode("forger");
    const nonce = new Uint8Array(40);
    const challenge = { nonce, clusterId: rig.store.clusterId() };
    const signature = node.sign(RegistryService.method.registerNode, challenge);
    const request = await node.joining(rig.registry);
    const forged = rig.registry.registerNode({ ...request, proof: { nonce, signature } });
    expect(await refusalOf(forged)).toMatchObject({ reason: "CHALLENGE_INVALID" });
  });

  it("should still refuse a used proof when used nonces are purged", async () => {
    const request = await new TestNode("purged").joining(rig.registry);
    await rig.registry.registerNode(request);
    await pruneChallenges(rig.store.db, 60_000);
    expect(await refusalOf(rig.registry.registerNode(request))).toMatchObject({
      reason: "CHALLENGE_INVALID",
    });
  });
});
