import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { createTestDatabase, type TestDatabase } from "@rollcall/testkit";
import { insertComputeNodes, type NewComputeNode, StoreMovedError } from "./new-nodes.ts";
import { getNodes, lockNodes } from "./nodes.ts";
import { removeNode } from "./save-node.ts";

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());

function newNode(nodeId: string, fingerprint = `SHA256:${nodeId}`): NewComputeNode {
  return {
    key: { nodeId, publicKey: new Uint8Array(32), fingerprint },
    membership: { state: "PENDING", sinceMs: 0, reason: "R", message: "", actor: "system" },
    report: {
      info: { hostname: nodeId },
      digest: `digest of ${nodeId}`,
      summary: { cores: 2, memoryBytes: 2 ** 53 - 1, diskBytes: 5, gpus: 1 },
      agentLabels: Object.fromEntries(Array.from({ length: 64 }, (_, index) => [`key-${index}`, nodeId])),
    },
    approvedHardware: null,
    holds: [],
    joining: { tokenId: null, ephemeral: false, withoutToken: false, from: null },
    tokenLabels: {},
  };
}

const insert = (...nodes: readonly NewComputeNode[]) =>
  database.store.transaction((tx) => insertComputeNodes(tx, nodes));

describe("insertComputeNodes()", () => {
  it("should add nothing when there is nothing to add", async () => {
    await insert();
  });

  it("should add many at once, with all their rows", async () => {
    const ids = Array.from({ length: 200 }, (_, index) => `n${index}`).sort();
    await insert(...ids.toReversed().map((id) => newNode(id)));
    const nodes = await getNodes(database.store.db, ids);
    expect(nodes.map(({ id }) => id)).toEqual(ids);
    expect(nodes[7]).toMatchObject({
      id: ids[7],
      type: "COMPUTE",
      membership: { state: "PENDING", reason: "R", actor: "system" },
      connection: { state: "DISCONNECTED", reason: "NEVER_CONNECTED" },
      health: { state: "UNKNOWN", reason: "NEVER_CONNECTED" },
      summary: { cores: 2, memoryBytes: 2 ** 53 - 1, diskBytes: 5, gpus: 1 },
      infoDigest: `digest of ${ids[7]}`,
      keyFingerprint: `SHA256:${ids[7]}`,
      session: { epoch: 0, replicaId: null },
    });
    expect(nodes[7]?.labels).toHaveLength(64);
  });

  it.each([
    ["an id", newNode("taken", "SHA256:other")],
    ["a key", newNode("other", "SHA256:taken")],
  ])("should keep nothing when %s is taken", async (_, node) => {
    await insert(newNode("taken")).catch(() => {});
    await expect(insert(newNode("innocent"), node)).rejects.toThrow(StoreMovedError);
    expect(await getNodes(database.store.db, ["innocent", "other"])).toEqual([]);
  });

  it("should continue the epochs of an earlier node with the same id", async () => {
    const { store } = database;
    await insert(newNode("again"));
    await store.db.updateTable("node_sessions").set({ epoch: 7 }).where("node_id", "=", "again").execute();
    await store.transaction(async (tx) => {
      const [node] = await lockNodes(tx, ["again", "never", "again"]);
      if (node === undefined) throw new Error("the node is not there");
      await removeNode(tx, node, { actor: "token:x", reason: "TESTED" });
    });
    await insert(newNode("again"));
    expect(await getNodes(store.db, ["again"])).toMatchObject([{ session: { epoch: 7 } }]);
  });
});
