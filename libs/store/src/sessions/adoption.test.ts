import { afterAll, beforeAll, beforeEach, describe, expect, it } from "@jest/globals";
import { connectionAfter, healthAfter } from "@rollcall/domain";
import { addNode, createTestDatabase, type TestDatabase, testFingerprint } from "@rollcall/testkit";
import type { Store } from "../database/store.ts";
import { releaseLease, takeLease } from "../leases/leases.ts";
import { currentRevision, readEvents } from "../log/events.ts";
import { getNode } from "../nodes/nodes.ts";
import { adoptOrphans } from "./adoption.ts";
import { heldBy, openSessions } from "./sessions.ts";
import { writeTransitions } from "./transitions.ts";

let database: TestDatabase;
let store: Store;
const BY = { actor: "replica:old", atMs: 0 };

beforeAll(async () => {
  database = await createTestDatabase();
  store = database.store;
});

afterAll(async () => {
  await database.drop();
});

beforeEach(async () => {
  await store.db.deleteFrom("leases").execute();
  await store.db.deleteFrom("nodes").execute();
});

function take(instance: string) {
  const claim = { name: instance, instance, service: "health", address: "a:1" };
  return takeLease(store.db, claim);
}

async function connect(replicaId: string, ...ids: string[]): Promise<void> {
  for (const id of ids) await addNode(store, id);
  const machine = { instanceId: "i", bootId: "b", machineFingerprint: "f", address: "a:1" };
  await store.change((tx) =>
    openSessions(
      tx,
      ids.map((nodeId) => ({
        nodeId,
        replicaId,
        ...machine,
        keyFingerprint: testFingerprint(nodeId),
      })),
    ),
  );
}

describe("adoptOrphans()", () => {
  it("should adopt the nodes of a replica without a lease, each with the next epoch", async () => {
    await connect("old", "a", "b");
    await connect("alive", "c");
    await writeTransitions(store, "old", [
      { nodeId: "a", epoch: 1, health: healthAfter({ kind: "beat" }, BY) },
      { nodeId: "b", epoch: 1, connection: connectionAfter("goodbye", BY) },
    ]);
    await take("new");
    await take("alive");
    const gone = await getNode(store.db, "b");
    const before = await currentRevision(store.db);
    const adopted = await adoptOrphans(store, "new", 10);
    expect(adopted).toEqual([
      {
        nodeId: "a",
        epoch: 2,
        previousReplicaId: "old",
        connectionBefore: "CONNECTED",
        connection: expect.objectContaining({
          state: "DISCONNECTED",
          reason: "REPLICA_LOST",
          actor: "replica:new",
        }),
        detectedHealth: expect.objectContaining({ state: "HEALTHY" }),
        marked: false,
        membership: expect.objectContaining({ state: "APPROVED" }),
      },
      expect.objectContaining({
        nodeId: "b",
        epoch: 2,
        connectionBefore: "DISCONNECTED",
        connection: gone?.connection,
      }),
    ]);
    const { events } = await readEvents(store.db, { after: before, limit: 10 });
    expect(events).toMatchObject([{ subject: "a", reason: "REPLICA_LOST", displaces: "old" }]);
    expect((await getNode(store.db, "a"))?.connection).toEqual(adopted[0]?.connection);
    expect((await getNode(store.db, "b"))?.connection).toEqual(gone?.connection);
    expect((await heldBy(store.db, "alive", null)).map(({ nodeId }) => nodeId)).toEqual(["c"]);
    expect(await adoptOrphans(store, "new", 10)).toEqual([]);
  });

  it("should fence the replica that was lost", async () => {
    await connect("old", "a");
    await take("new");
    await adoptOrphans(store, "new", 10);
    const items = [{ nodeId: "a", epoch: 1, health: healthAfter({ kind: "beat" }, BY) }];
    expect(await writeTransitions(store, "old", items)).toEqual(new Set());
  });

  it("should adopt nothing for a replica that holds no lease itself", async () => {
    await connect("old", "a");
    expect(await adoptOrphans(store, "new", 10)).toEqual([]);
    await take("new");
    await releaseLease(store.db, "new", "new");
    expect(await adoptOrphans(store, "new", 10)).toEqual([]);
  });

  it("should adopt at most the limit, never connected nodes included, and no orchestrators", async () => {
    await connect("old", "a", "b", "c");
    await addNode(store, "never");
    await addNode(store, "control", { type: "ORCHESTRATOR" });
    await store.db.updateTable("node_sessions").set({ replica_id: "gone" }).where("node_id", "=", "control").execute();
    await take("new");
    const rounds = [];
    for (let round = 0; round < 3; round += 1) {
      rounds.push((await adoptOrphans(store, "new", 2)).map(({ nodeId }) => nodeId));
    }
    expect(rounds).toEqual([["a", "b"], ["c"], []]);
  });

  it("should adopt at most the limit of several lost replicas together", async () => {
    await connect("old-1", "a", "b", "c");
    await connect("old-2", "d", "e");
    await take("new");
    const rounds = [];
    for (let round = 0; round < 3; round += 1) {
      rounds.push((await adoptOrphans(store, "new", 4)).map(({ nodeId }) => nodeId));
    }
    expect(rounds.map((ids) => ids.length)).toEqual([4, 1, 0]);
    expect(rounds.flat().toSorted()).toEqual(["a", "b", "c", "d", "e"]);
  });

  it("should share the nodes of several lost replicas among concurrent adopters, each once", async () => {
    const ids = Array.from({ length: 60 }, (_, number) => `n${number}`);
    await connect("old-1", ...ids.slice(0, 25));
    await connect("old-2", ...ids.slice(25));
    await take("x");
    await take("y");
    const taken: string[] = [];
    const adoptAll = async (replicaId: string) => {
      let idle = 0;
      while (idle < 2) {
        const adopted = await adoptOrphans(store, replicaId, 7);
        taken.push(...adopted.map(({ nodeId }) => nodeId));
        idle = adopted.length === 0 ? idle + 1 : 0;
      }
    };
    await Promise.all([adoptAll("x"), adoptAll("x"), adoptAll("y"), adoptAll("y")]);
    expect(taken.toSorted()).toEqual(ids.toSorted());
    const [x, y] = [await heldBy(store.db, "x", null), await heldBy(store.db, "y", null)];
    expect(x.length + y.length).toBe(60);
    expect(new Set([...x, ...y].map(({ epoch }) => epoch))).toEqual(new Set([2]));
  });
});
