import { Code } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { RegistryService } from "@rollcall/api/rollcall/registry/v1/registry_pb";
import { keyFingerprint } from "@rollcall/identity";
import { insertNode } from "@rollcall/store";
import { createTestDatabase, refusalOf, saveKey } from "@rollcall/testkit";
import { type Rig, startRig } from "../testing/rig.ts";
import { INFO, TestNode } from "../testing/test-node.ts";

/** The eight points of small order, and non-canonical encodings of these and other points. */
const WEAK: readonly (readonly [string, string])[] = [
  ["SMALL_ORDER", `01${"00".repeat(31)}`],
  ["SMALL_ORDER", `ec${"ff".repeat(30)}7f`],
  ["SMALL_ORDER", "00".repeat(32)],
  ["SMALL_ORDER", `${"00".repeat(31)}80`],
  ["SMALL_ORDER", "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05"],
  ["SMALL_ORDER", "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85"],
  ["SMALL_ORDER", "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a"],
  ["SMALL_ORDER", "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa"],
  ["SMALL_ORDER", `01${"00".repeat(30)}80`],
  ["SMALL_ORDER", `ec${"ff".repeat(31)}`],
  ["NOT_CANONICAL", `ed${"ff".repeat(30)}7f`],
  ["NOT_CANONICAL", `ed${"ff".repeat(31)}`],
  ["NOT_CANONICAL", `ee${"ff".repeat(30)}7f`],
  ["NOT_CANONICAL", `ee${"ff".repeat(31)}`],
  ["NOT_CANONICAL", `f0${"ff".repeat(30)}7f`],
  ["NOT_CANONICAL", "ff".repeat(32)],
];

const fromHex = (text: string) => new Uint8Array(Buffer.from(text, "hex"));
const NEUTRAL = fromHex(`01${"00".repeat(31)}`);
/**
 * A signature that verifies for any message with the neutral element as the key: R is the neutral
 * element too, and S is 0.
 */
const FORGED = fromHex(`01${"00".repeat(63)}`);

const refused = (flaw: string, field: string) => ({
  code: Code.InvalidArgument,
  reason: "INVALID_PUBLIC_KEY",
  metadata: { flaw },
  violations: [{ field }],
});

let rig: Rig;
beforeAll(async () => {
  rig = await startRig(await createTestDatabase());
});
afterAll(() => rig.close());

/** Join with a key that anyone can sign for. */
async function forge(nodeId: string, publicKey: Uint8Array) {
  const { nonce } = await rig.registry.createChallenge({});
  const proof = { nonce, signature: FORGED };
  return rig.registry.registerNode({ nodeId, publicKey, proof, info: INFO });
}

describe("a key with which anyone can sign", () => {
  it.each(WEAK)("should be refused to a newcomer: %s %s", async (flaw, hex) => {
    expect(await refusalOf(forge("newcomer", fromHex(hex)))).toMatchObject(refused(flaw, "public_key"));
  });

  it.each(WEAK)("should be refused in a rotation: %s %s", async (flaw, hex) => {
    const node = new TestNode("turning");
    await node.register(rig.registry);
    const proof = await node.prove(rig.registry, RegistryService.method.rotateNodeKey);
    const rotation = rig.registry.rotateNodeKey({
      nodeId: node.id,
      proof,
      nextPublicKey: fromHex(hex),
      nextSignature: FORGED,
    });
    expect(await refusalOf(rotation)).toMatchObject(refused(flaw, "next_public_key"));
    await rig.registry.deregisterNode({
      nodeId: node.id,
      proof: await node.prove(rig.registry, RegistryService.method.deregisterNode),
    });
  });

  it.each(["updateNodeInfo", "deregisterNode", "rotateNodeKey"] as const)(
    "should refuse %s if the store has it already",
    async (name) => {
      const nodeId = `old-${name}`;
      await rig.store.transaction(async (tx) => {
        const membership = {
          state: "APPROVED",
          sinceMs: 0,
          reason: "TEST",
          message: "",
          actor: "system",
        } as const;
        await insertNode(tx, { id: nodeId, type: "COMPUTE", membership });
        // A fingerprint can have only one owner, so the same key is stored under a different
        // fingerprint for each node.
        const fingerprint = `${keyFingerprint(NEUTRAL)}-${name}`;
        await saveKey(tx, { nodeId, publicKey: NEUTRAL, fingerprint });
      });
      const { nonce, clusterId } = await rig.registry.createChallenge({});
      const next = new TestNode(nodeId);
      const call = rig.registry[name]({
        nodeId,
        proof: { nonce, signature: FORGED },
        info: INFO,
        nextPublicKey: next.keyPair.publicKey,
        nextSignature: next.sign(RegistryService.method.rotateNodeKey, { nonce, clusterId }),
      });
      expect(await refusalOf(call)).toMatchObject({ reason: "PROOF_INVALID" });
    },
  );
});
