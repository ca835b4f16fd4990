import { Code } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { RegistryService } from "@rollcall/api/rollcall/registry/v1/registry_pb";
import { generateKeyPair, keyFingerprint, type NodeKeyPair } from "@rollcall/identity";
import { getNode, insertBan, lockBans } from "@rollcall/store";
import { createTestDatabase, refusalOf } from "@rollcall/testkit";
import { operate } from "../testing/operator.ts";
import { addOrchestrator, eventsOf } from "../testing/record.ts";
import { type Rig, startRig } from "../testing/rig.ts";
import { INFO, TestNode } from "../testing/test-node.ts";

const { method } = RegistryService;
let rig: Rig;
beforeAll(async () => {
  rig = await startRig(await createTestDatabase());
});
afterAll(() => rig.close());

async function newNode(id: string): Promise<TestNode> {
  const node = new TestNode(id);
  await node.register(rig.registry);
  return node;
}

/** A request that offers a next key, signed with both keys. */
async function offer(node: TestNode, next: NodeKeyPair = generateKeyPair()) {
  const { nonce, clusterId } = await rig.registry.createChallenge({});
  const challenge = { nonce, clusterId };
  const successor = new TestNode(node.id, next);
  return {
    nodeId: node.id,
    proof: { nonce, signature: node.sign(method.rotateNodeKey, challenge) },
    nextPublicKey: next.publicKey,
    nextSignature: successor.sign(method.rotateNodeKey, challenge),
  };
}

async function rotate(node: TestNode, next?: NodeKeyPair) {
  return rig.registry.rotateNodeKey(await offer(node, next));
}

function printOf({ keyPair }: { readonly keyPair: NodeKeyPair }): string {
  return keyFingerprint(keyPair.publicKey);
}

async function rotationsOf(id: string) {
  return (await eventsOf(rig.store, id)).filter(({ type }) => type === "node.key.rotated");
}

describe("rotateNodeKey()", () => {
  it("should accept the offer, the same one again, and either key until the next one is used", async () => {
    const node = await newNode("turning");
    const successor = new TestNode("turning");
    const offered = {
      keyFingerprint: printOf(node),
      nextKeyFingerprint: printOf(successor),
    };
    expect(await rotate(node, successor.keyPair)).toMatchObject(offered);
    expect(await rotate(node, successor.keyPair)).toMatchObject(offered);
    expect((await node.register(rig.registry)).created).toBe(false);
    expect(await getNode(rig.store.db, "turning")).toMatchObject({
      keyFingerprint: printOf(node),
      nextKeyFingerprint: printOf(successor),
    });
    expect(await rotationsOf("turning")).toEqual([]);
    const offers = await eventsOf(rig.store, "turning");
    expect(offers.filter(({ type }) => type === "node.key.offered")).toMatchObject([
      {
        ...{ actor: "node:turning", reason: "NEXT_KEY_OFFERED", before: null },
        after: { nextKeyFingerprint: printOf(successor) },
      },
    ]);
    const answer = await successor.register(rig.registry);
    expect(answer.node?.keyFingerprint).toBe(printOf(successor));
    expect(await refusalOf(node.register(rig.registry))).toMatchObject({
      reason: "NODE_KEY_MISMATCH",
    });
    expect(await refusalOf(rotate(node))).toMatchObject({ reason: "PROOF_INVALID" });
    expect(await rotationsOf("turning")).toMatchObject([
      {
        actor: "node:turning",
        before: { keyFingerprint: printOf(node) },
        after: { keyFingerprint: printOf(successor) },
      },
    ]);
  });

  it.each(["rotateNodeKey", "updateNodeInfo", "deregisterNode"] as const)(
    "should accept a proof of %s with the next key as its first use",
    async (name) => {
      const id = `first-by-${name}`;
      const node = await newNode(id);
      const successor = new TestNode(id);
      await rotate(node, successor.keyPair);
      if (name === "rotateNodeKey") {
        expect(await rotate(successor, successor.keyPair)).toMatchObject({
          keyFingerprint: printOf(successor),
          nextKeyFingerprint: "",
        });
      } else {
        const proof = await successor.prove(rig.registry, method[name]);
        await rig.registry[name]({ nodeId: id, proof, info: INFO });
      }
      expect(await rotationsOf(id)).toHaveLength(1);
    },
  );

  it("should let a new offer replace an unused one", async () => {
    const node = await newNode("undecided");
    const [first, second] = [new TestNode("undecided"), new TestNode("undecided")];
    await rotate(node, first.keyPair);
    await rotate(node, second.keyPair);
    expect(await refusalOf(first.register(rig.registry))).toMatchObject({
      reason: "NODE_KEY_MISMATCH",
    });
    await node.register(rig.registry);
    await second.register(rig.registry);
  });

  it("should refuse a key that another node has or has offered, also in a registration", async () => {
    const [left, right] = [await newNode("left"), await newNode("right")];
    const wanted = generateKeyPair();
    const inUse = { code: Code.PermissionDenied, reason: "NODE_KEY_IN_USE" };
    expect(await refusalOf(rotate(left, right.keyPair))).toMatchObject(inUse);
    await rotate(left, wanted);
    expect(await refusalOf(rotate(right, wanted))).toMatchObject({
      ...inUse,
      metadata: { node: "right", owner: "left" },
    });
    const newcomer = new TestNode("newcomer", wanted);
    expect(await refusalOf(newcomer.register(rig.registry))).toMatchObject(inUse);
  });

  it("should give a key to one of many concurrent claimants, including registrations", async () => {
    for (let round = 0; round < 10; round += 1) {
      const wanted = generateKeyPair();
      const nodes = await Promise.all([0, 1].map((index) => newNode(`race-${round}-${index}`)));
      const newcomer = new TestNode(`race-${round}-new`, wanted);
      const calls = [...nodes.map((node) => rotate(node, wanted)), newcomer.register(rig.registry)];
      const outcomes = await Promise.allSettled(calls);
      expect(outcomes.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
    }
  });

  it("should refuse a banned key, and a rejected node", async () => {
    const node = await newNode("watched");
    const banned = generateKeyPair();
    await rig.store.transaction(async (tx) => {
      await lockBans(tx);
      const fingerprint = keyFingerprint(banned.publicKey);
      await insertBan(tx, { nodeId: null, fingerprint, reason: "stolen", actor: "token:t" });
    });
    expect(await refusalOf(rotate(node, banned))).toMatchObject({ reason: "NODE_BANNED" });
    await operate(rig.store, "watched", "reject");
    expect(await refusalOf(rotate(node))).toMatchObject({ reason: "NODE_REJECTED" });
  });

  it("should refuse an invalid key, and a next key that did not sign", async () => {
    const node = await newNode("careless");
    const request = await offer(node);
    const short = rig.registry.rotateNodeKey({ ...request, nextPublicKey: new Uint8Array(31) });
    expect(await refusalOf(short)).toMatchObject({ reason: "INVALID_PUBLIC_KEY" });
    const nextSignature = request.proof.signature;
    expect(await refusalOf(rig.registry.rotateNodeKey({ ...request, nextSignature }))).toMatchObject({
      code: Code.Unauthenticated,
      reason: "NEXT_KEY_PROOF_INVALID",
    });
    await rig.registry.rotateNodeKey(request);
    expect(await refusalOf(rig.registry.rotateNodeKey(request))).toMatchObject({
      reason: "CHALLENGE_INVALID",
    });
  });

  it("should refuse a node that is not registered, and an orchestrator", async () => {
    expect(await refusalOf(rotate(new TestNode("nobody")))).toMatchObject({
      reason: "NODE_NOT_REGISTERED",
    });
    await addOrchestrator(rig.store, "hub");
    expect(await refusalOf(rotate(new TestNode("hub")))).toMatchObject({
      reason: "NODE_IS_ORCHESTRATOR",
    });
  });
});
