import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { addNode, createTestDatabase, type TestDatabase, testFingerprint } from "@rollcall/testkit";
import type { Store } from "../database/store.ts";
import { openSessions } from "../sessions/sessions.ts";
import { getNode, lockNode } from "./nodes.ts";
import { removeNode } from "./save-node.ts";
import { getTombstone, listTombstones, pruneTombstones } from "./tombstones.ts";

let database: TestDatabase;
let store: Store;

beforeAll(async () => {
  database = await createTestDatabase();
  store = database.store;
});

afterAll(async () => {
  await database.drop();
});

const OPERATOR = { actor: "token:t", reason: "OPERATOR_DELETED" };

async function hello(nodeId: string): Promise<number> {
  const identity = { instanceId: "i", bootId: "b", machineFingerprint: "f", address: "127.0.0.1:1" };
  const { result } = await store.change((tx) =>
    openSessions(tx, [{ nodeId, replicaId: "r", ...identity, keyFingerprint: testFingerprint(nodeId) }]),
  );
  const [opening] = result;
  return opening?.outcome === "OPENED" ? opening.epoch : -1;
}

describe("removeNode()", () => {
  it("should leave a tombstone and nothing else", async () => {
    const node = await addNode(store, "removed", { labels: { zone: "a" } });
    await store.transaction(async (tx) => {
      const locked = await lockNode(tx, "removed");
      if (locked !== null) await removeNode(tx, locked, { ...OPERATOR, message: "scrapped" });
    });
    expect(await getNode(store.db, "removed")).toBeNull();
    for (const table of ["node_labels", "node_identities", "node_sessions"] as const) {
      const rows = await store.db.selectFrom(table).select("node_id").where("node_id", "=", "removed").execute();
      expect(rows).toEqual([]);
    }
    const tombstone = await getTombstone(store.db, "removed");
    expect(tombstone).toMatchObject({
      nodeId: "removed",
      type: "COMPUTE",
      ...OPERATOR,
      message: "scrapped",
      lastState: {
        membership: { state: "APPROVED" },
        keyFingerprint: "SHA256:removed",
        labels: node.labels.map((label) => ({ ...label })),
      },
    });
    expect(await listTombstones(store.db, { limit: 1, before: null })).toEqual([tombstone]);
    expect(await pruneTombstones(store.db, 60_000)).toBe(0);
    expect(await pruneTombstones(store.db, -60_000)).toBe(1);
  });

  it("should continue the epochs for the next node with the same id, and never repeat an etag", async () => {
    const first = await addNode(store, "again");
    expect(await hello("again")).toBe(1);
    expect(await hello("again")).toBe(2);
    await store.transaction(async (tx) => {
      const node = await lockNode(tx, "again");
      if (node !== null) await removeNode(tx, node, OPERATOR);
    });
    const second = await addNode(store, "again");
    expect(second.session.epoch).toBe(2);
    expect(second.connection.state).toBe("DISCONNECTED");
    expect(await hello("again")).toBe(3);
    expect(second.etag).not.toBe(first.etag);
  });

  it("should succeed while sessions of the node are opened, without a deadlock", async () => {
    for (let round = 0; round < 20; round += 1) {
      const id = `contested-${round}`;
      await addNode(store, id);
      const [epoch] = await Promise.all([
        hello(id),
        store.transaction(async (tx) => {
          const node = await lockNode(tx, id);
          if (node !== null) await removeNode(tx, node, OPERATOR);
        }),
      ]);
      expect([-1, 1]).toContain(epoch);
      expect(await getNode(store.db, id)).toBeNull();
      const next = await addNode(store, id);
      expect(next.session.epoch).toBe(Math.max(0, epoch));
    }
  });
});
