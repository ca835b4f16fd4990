import { afterAll, afterEach, beforeAll, describe, expect, it } from "@jest/globals";
import { clearDuplicates } from "@rollcall/store";
import { createTestDatabase, eventually, FakeAgents, type TestDatabase } from "@rollcall/testkit";
import { eventsOf, recordOf, register } from "../testing/record.ts";
import { type TestReplica, TestReplicas } from "../testing/test-replica.ts";

const agents = new FakeAgents();
const replicas = new TestReplicas();
let database: TestDatabase;
let pair: readonly [TestReplica, TestReplica];

beforeAll(async () => {
  database = await createTestDatabase();
  const start = async () => replicas.start({ store: await database.openStore() });
  pair = [await start(), await start()];
});

afterEach(() => agents.close());

afterAll(async () => {
  await replicas.close();
  await database.drop();
});

async function newAgent(nodeId: string) {
  const agent = agents.create(nodeId);
  await register(database.store, [agent]);
  return agent;
}

/** Open a stream from each of these machines in turn, each at the other replica. */
async function joinFrom(agent: Awaited<ReturnType<typeof newAgent>>, machines: readonly string[]) {
  const streams = [];
  for (const [index, machine] of machines.entries()) {
    const { address } = pair[index % 2 === 0 ? 0 : 1];
    const hello = { bootId: machine, machineFingerprint: machine.slice(0, 1) };
    const stream = await agent.join(address, hello);
    await stream.beatAcknowledged();
    streams.push(stream);
  }
  return streams;
}

/** Have a node's changes of machine be older. */
async function age(nodeId: string, ms: number): Promise<void> {
  const { db } = database.store;
  const { machines } = await db
    .selectFrom("node_sessions")
    .select("machines")
    .where("node_id", "=", nodeId)
    .executeTakeFirstOrThrow();
  const older = JSON.stringify(machines.map((it) => ({ ...it, atMs: it.atMs - ms })));
  await db.updateTable("node_sessions").set({ machines: older }).where("node_id", "=", nodeId).execute();
}

async function identityEvents(nodeId: string) {
  return eventsOf(database.store, nodeId, ["node.identity.duplicated", "node.identity.cleared"]);
}

describe("two streams with one identity", () => {
  it("should leave the newer one, and tell the older one on the other replica to stay away", async () => {
    const agent = await newAgent("twice");
    const [first, second] = await joinFrom(agent, ["a", "a"]);
    expect((await first?.end())?.error?.reason).toBe("SESSION_SUPERSEDED");
    await second?.beatAcknowledged();
    expect((await recordOf(database.store, "twice")).session).toMatchObject({
      epoch: 2,
      replicaId: pair[1].instance,
    });
    expect(await identityEvents("twice")).toEqual([]);
  });
});

describe("two machines with one identity", () => {
  it("should be noticed once when they alternate, and shown with both in the node's health", async () => {
    const agent = await newAgent("cloned");
    await joinFrom(agent, ["a", "b", "a"]);
    expect(await identityEvents("cloned")).toEqual([]);
    await joinFrom(agent, ["b", "a", "b"]);
    const events = await identityEvents("cloned");
    expect(events).toMatchObject([
      {
        type: "node.identity.duplicated",
        reason: "DUPLICATE_IDENTITY",
        after: {
          machines: [
            { fingerprint: "a", bootId: "a", address: expect.stringContaining("127.0.0.1:") },
            { fingerprint: "b", bootId: "b", address: expect.stringContaining("127.0.0.1:") },
          ],
        },
      },
    ]);
    await eventually(async () => {
      const { health } = await recordOf(database.store, "cloned");
      expect(health).toMatchObject({ state: "HEALTHY", reason: "DUPLICATE_IDENTITY" });
      expect(health.message).toContain("machine a boot a at 127.0.0.1 and machine b boot b at 127.0.0.1;");
    });
  });

  it("should not be suspected of a machine that restarts, however often", async () => {
    const agent = await newAgent("rebooted");
    await joinFrom(agent, ["a1", "a2", "a3", "a4", "a5", "a6"]);
    expect(await identityEvents("rebooted")).toEqual([]);
  });

  it("should be cleared once one machine has been alone for long enough, and noticed again after that", async () => {
    const { store } = database;
    const agent = await newAgent("parted");
    await joinFrom(agent, ["a", "b", "a", "b"]);
    const owner = (await recordOf(store, "parted")).session.replicaId ?? "";
    expect(await clearDuplicates(store, owner)).toEqual([]);
    await age("parted", 600_000);
    expect(await clearDuplicates(store, "another-replica")).toEqual([]);
    expect(await clearDuplicates(store, owner)).toEqual(["parted"]);
    expect(await clearDuplicates(store, owner)).toEqual([]);
    const { health } = await recordOf(store, "parted");
    expect(health.reason).not.toBe("DUPLICATE_IDENTITY");
    await joinFrom(agent, ["a", "b", "a", "b"]);
    expect((await identityEvents("parted")).map(({ type }) => type)).toEqual([
      "node.identity.duplicated",
      "node.identity.cleared",
      "node.identity.duplicated",
    ]);
  });
});
