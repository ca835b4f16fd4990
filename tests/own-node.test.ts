import { afterAll, afterEach, beforeAll, describe, expect, it } from "@jest/globals";
import { RegistryService } from "../libs/api/src/gen/rollcall/registry/v1/registry_pb.ts";
import { proofText } from "../libs/domain/src/index.ts";
import { createChallenge, NONCE_TTL_MS, signProof } from "../libs/identity/src/index.ts";
import {
  createTestDatabase,
  FakeAgent,
  HEARTBEAT_METHOD,
  refusalOf,
  type TestDatabase,
} from "../libs/testkit/src/index.ts";
import { type TestReplica, TestReplicas } from "../services/health/src/testing/test-replica.ts";
import { type Rig, startRig } from "../services/registry/src/testing/rig.ts";
import { INFO, type Proof, TestNode } from "../services/registry/src/testing/test-node.ts";

const { method } = RegistryService;
const METHODS = ["registerNode", "updateNodeInfo", "rotateNodeKey", "deregisterNode"] as const;
type Method = (typeof METHODS)[number];

let database: TestDatabase;
let rig: Rig;
let other: Rig;
let replica: TestReplica;
const replicas = new TestReplicas();
const agents: FakeAgent[] = [];
let nodes = 0;

beforeAll(async () => {
  database = await createTestDatabase();
  const { store } = database;
  rig = await startRig({ store });
  other = await startRig(await createTestDatabase());
  replica = await replicas.start({ store });
});

afterEach(() => {
  for (const agent of agents.splice(0)) agent.close();
});

afterAll(async () => {
  await replicas.close();
  await other.close();
  await rig.close();
  await database.drop();
});

/** Register two nodes. The calls name the victim and are made by the thief. */
async function twoNodes(): Promise<{ readonly victim: TestNode; readonly thief: TestNode }> {
  nodes += 1;
  const [victim, thief] = [new TestNode(`victim-${nodes}`), new TestNode(`thief-${nodes}`)];
  await victim.register(rig.registry);
  await thief.register(rig.registry);
  return { victim, thief };
}

/** Call a method for nodes with a valid or invalid proof. */
function call(name: Method, node: TestNode, proof: Proof, registry = rig.registry) {
  const { id: nodeId, keyPair } = node;
  switch (name) {
    case "registerNode":
      return registry.registerNode({ nodeId, publicKey: keyPair.publicKey, proof, info: INFO });
    case "updateNodeInfo":
      return registry.updateNodeInfo({ nodeId, proof, info: { ...INFO, hostname: "taken" } });
    case "deregisterNode":
      return registry.deregisterNode({ nodeId, proof });
    case "rotateNodeKey": {
      // The caller chooses the next key, so it can sign any nonce with the next key.
      const next = new TestNode(nodeId);
      const challenge = { nonce: proof.nonce, clusterId: rig.store.clusterId() };
      const nextSignature = next.sign(method.rotateNodeKey, challenge);
      const nextPublicKey = next.keyPair.publicKey;
      return registry.rotateNodeKey({ nodeId, proof, nextPublicKey, nextSignature });
    }
  }
}

function anotherMethod(name: Method): Method {
  return name === "updateNodeInfo" ? "deregisterNode" : "updateNodeInfo";
}

/**
 * Check that an attempt has not changed the node. It must still have its key and its description.
 */
async function expectUntouched(victim: TestNode): Promise<void> {
  const { node, created } = await victim.register(rig.registry);
  expect(created).toBe(false);
  expect(node?.info?.hostname).toBe(INFO.hostname);
}

describe.each(METHODS)("%s by another caller", (name) => {
  it("should refuse another node's key", async () => {
    const { victim, thief } = await twoNodes();
    const proof = await thief.prove(rig.registry, method[name], victim.id);
    expect(await refusalOf(call(name, victim, proof))).toMatchObject({ reason: "PROOF_INVALID" });
    await expectUntouched(victim);
  });

  it("should refuse a proof that another node made for itself", async () => {
    const { victim, thief } = await twoNodes();
    const proof = await thief.prove(rig.registry, method[name]);
    expect(await refusalOf(call(name, victim, proof))).toMatchObject({ reason: "PROOF_INVALID" });
    await expectUntouched(victim);
  });

  it("should refuse a proof of another method", async () => {
    const { victim } = await twoNodes();
    const proof = await victim.prove(rig.registry, method[anotherMethod(name)]);
    expect(await refusalOf(call(name, victim, proof))).toMatchObject({ reason: "PROOF_INVALID" });
    await expectUntouched(victim);
  });

  it("should refuse a proof for another cluster, and one that was made with its nonce", async () => {
    const { victim } = await twoNodes();
    const foreign = await victim.prove(other.registry, method[name]);
    expect(await refusalOf(call(name, victim, foreign))).toMatchObject({
      reason: "CHALLENGE_INVALID",
    });
    const { nonce } = await rig.registry.createChallenge({});
    const challenge = { nonce, clusterId: other.store.clusterId() };
    const proof = { nonce, signature: victim.sign(method[name], challenge) };
    expect(await refusalOf(call(name, victim, proof))).toMatchObject({ reason: "PROOF_INVALID" });
    await expectUntouched(victim);
  });

  it("should refuse an old nonce", async () => {
    const { victim } = await twoNodes();
    const { store } = database;
    const nonce = createChallenge(store.clusterSecret(), Date.now() - NONCE_TTL_MS - 60_000);
    const challenge = { nonce, clusterId: store.clusterId() };
    const proof = { nonce, signature: victim.sign(method[name], challenge) };
    expect(await refusalOf(call(name, victim, proof))).toMatchObject({
      reason: "CHALLENGE_INVALID",
    });
    await expectUntouched(victim);
  });

  it("should refuse a proof that was used before, from another connection", async () => {
    const { victim } = await twoNodes();
    const proof = await victim.prove(rig.registry, method[name]);
    await call(name, victim, proof);
    const elsewhere = await startRig({ store: database.store });
    try {
      const replayed = await refusalOf(call(name, victim, proof, elsewhere.registry));
      expect(replayed).toMatchObject({ reason: "CHALLENGE_INVALID" });
    } finally {
      await elsewhere.close();
    }
  });
});

describe("a Hello by another caller", () => {
  function agentOf(node: TestNode): FakeAgent {
    const agent = new FakeAgent({ nodeId: node.id, keyPair: node.keyPair });
    agents.push(agent);
    return agent;
  }

  function signed(node: TestNode, text: Parameters<typeof proofText>[0]): Uint8Array {
    return signProof(node.keyPair.privateKey, proofText(text));
  }

  it("should be refused with another node's key, or as another node's", async () => {
    const { victim, thief } = await twoNodes();
    for (const nodeId of [victim.id, thief.id]) {
      const stream = agentOf(thief).open(replica.address);
      const { nonce, clusterId } = await stream.nextOf("challenge");
      const text = { method: HEARTBEAT_METHOD, clusterId, nodeId, nonce };
      const signature = signed(thief, text);
      stream.send({ case: "hello", value: { nodeId: victim.id, signature } });
      expect((await stream.end()).error?.reason).toBe("PROOF_INVALID");
    }
  });

  it("should be refused when it was stolen from another connection", async () => {
    const { victim, thief } = await twoNodes();
    const own = agentOf(victim).open(replica.address);
    const heard = await own.nextOf("challenge");
    const clusterId = heard.clusterId;
    const text = { method: HEARTBEAT_METHOD, clusterId, nodeId: victim.id, nonce: heard.nonce };
    const hello = { nodeId: victim.id, signature: signed(victim, text), bootId: "b" };
    const stolen = agentOf(thief).open(replica.address);
    await stolen.nextOf("challenge");
    stolen.send({ case: "hello", value: hello });
    expect((await stolen.end()).error?.reason).toBe("PROOF_INVALID");
    // The proof must still be valid on the right connection, and its node must be unaffected.
    own.send({ case: "hello", value: hello });
    await own.nextOf("welcome");
    await own.beatAcknowledged();
  });

  it.each([
    ["another method", { method: "/rollcall.registry.v1.RegistryService/RegisterNode" }],
    ["another cluster", { clusterId: "another-cluster" }],
    ["another nonce", { nonce: new Uint8Array(32) }],
  ])("should be refused when it is signed for %s", async (_, changes) => {
    const { victim } = await twoNodes();
    const stream = agentOf(victim).open(replica.address);
    const { nonce, clusterId } = await stream.nextOf("challenge");
    const text = { method: HEARTBEAT_METHOD, clusterId, nodeId: victim.id, nonce, ...changes };
    stream.send({ case: "hello", value: { nodeId: victim.id, signature: signed(victim, text) } });
    expect((await stream.end()).error?.reason).toBe("PROOF_INVALID");
  });

  it("should lose its stream when the node has used its next key elsewhere", async () => {
    const { victim } = await twoNodes();
    const stream = await agentOf(victim).join(replica.address);
    await stream.beatAcknowledged();
    const successor = new TestNode(victim.id);
    const { nonce, clusterId } = await rig.registry.createChallenge({});
    const challenge = { nonce, clusterId };
    await rig.registry.rotateNodeKey({
      nodeId: victim.id,
      proof: { nonce, signature: victim.sign(method.rotateNodeKey, challenge) },
      nextPublicKey: successor.keyPair.publicKey,
      nextSignature: successor.sign(method.rotateNodeKey, challenge),
    });
    await stream.beatAcknowledged();
    await successor.register(rig.registry);
    expect((await stream.end()).error?.reason).toBe("NODE_KEY_RETIRED");
    const again = agentOf(victim).open(replica.address);
    await again.hello();
    expect((await again.end()).error?.reason).toBe("PROOF_INVALID");
    await (await agentOf(successor).join(replica.address)).beatAcknowledged();
  });
});
