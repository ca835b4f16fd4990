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

/** Parse the name of a process: "a1/x" is process x of boot a1 of machine a. */
function helloOf(agent: string) {
  const [bootId = "", instanceId = ""] = agent.split("/");
  return { bootId, machineFingerprint: bootId.slice(0, 1), instanceId };
}

/** Open a stream from each of these processes in order, alternating between the two replicas. */
async function joinFrom(agent: Awaited<ReturnType<typeof newAgent>>, others: readonly string[]) {
  const streams = [];
  for (const [index, other] of others.entries()) {
    const { address } = pair[index % 2 === 0 ? 0 : 1];
    const stream = await agent.join(address, helloOf(other));
    await stream.beatAcknowledged();
    streams.push(stream);
  }
  return streams;
}

/**
 * Like joinFrom(), but break each stream and wait for the disconnection before the next one, as with restarted agents.
 */
async function restartAs(agent: Awaited<ReturnType<typeof newAgent>>, others: readonly string[]) {
  for (const other of others) {
    const [stream] = await joinFrom(agent, [other]);
    stream?.breakConnection();
    await eventually(async () => {
      expect((await recordOf(database.store, agent.nodeId)).connection.state).toBe("DISCONNECTED");
    });
  }
}

/** Move the times at which a node's agent changed into the past. */
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
  it("should keep the newer one, and tell the older one on the other replica to stay away", async () => {
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
  it("should be detected once when they alternate, and both be shown in the node's health", async () => {
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

  it("should not be suspected when a machine restarts, however often", async () => {
    const agent = await newAgent("rebooted");
    await restartAs(agent, ["a1", "a2", "a3", "a4", "a5", "a6"]);
    expect(await identityEvents("rebooted")).toEqual([]);
  });

  it("should be detected when more copies of one disk take over than can come back", async () => {
    const agent = await newAgent("copies");
    await joinFrom(agent, ["a/1", "b/2", "c/3", "d/4", "e/5", "f/6"]);
    expect((await identityEvents("copies"))[0]).toMatchObject({ type: "node.identity.duplicated" });
  });

  it("should be cleared once only one agent was seen for long enough, and be detected again later", async () => {
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

describe("two agents of one machine with one identity", () => {
  it("should be detected once, hold the node, and be named with both addresses", async () => {
    const agent = await newAgent("twins");
    await joinFrom(agent, ["a/1", "a/2", "a/1"]);
    expect(await identityEvents("twins")).toEqual([]);
    await joinFrom(agent, ["a/2", "a/1", "a/2"]);
    expect(await identityEvents("twins")).toMatchObject([
      { type: "node.identity.duplicated", after: { machines: [{ instanceId: "1" }, { instanceId: "2" }] } },
    ]);
    await eventually(async () => {
      const { scheduling, duplicate } = await recordOf(database.store, "twins");
      expect(scheduling).toMatchObject({ state: "INELIGIBLE", reason: "DUPLICATE_IDENTITY" });
      expect(duplicate?.map(({ address }) => address)).toEqual([
        expect.stringMatching(/^127\.0\.0\.1:\d+$/),
        expect.stringMatching(/^127\.0\.0\.1:\d+$/),
      ]);
    });
  });

  it("should not be suspected when an agent restarts, changes its address or moves to another replica", async () => {
    const agent = await newAgent("alone");
    await restartAs(agent, ["a/1", "a/2", "a/3", "a/4", "a/5", "a/6"]);
    await joinFrom(agent, ["a/7", "a/7", "a/7", "a/7", "a/7", "a/7"]);
    expect(await identityEvents("alone")).toEqual([]);
    expect((await recordOf(database.store, "alone")).duplicate).toBeNull();
  });

  it("should be told to return soon until they are detected, and then alternate slowly", async () => {
    const agent = await newAgent("asked");
    const streams = [];
    for (const name of ["a/1", "a/2", "a/1", "a/2", "a/1", "a/2"]) {
      const stream = await agent.join(pair[0].address, helloOf(name));
      await stream.beatAcknowledged();
      streams.push(stream);
    }
    const ends = await Promise.all(streams.slice(0, -1).map((stream) => stream.end()));
    const waits = ends.map(({ error }) => error?.retryAfterMs ?? 0);
    expect(waits.map((ms) => ms >= 30_000)).toEqual([false, false, true, true, true]);
  });

  it("should not count as a reboot, whatever their boot ids are", async () => {
    const agent = await newAgent("boots");
    await joinFrom(agent, ["a1/1", "a2/2", "a1/1", "a2/2", "a1/1"]);
    const { duplicate, suspectedReboot } = await recordOf(database.store, "boots");
    expect([duplicate === null, suspectedReboot]).toEqual([false, null]);
    expect(await eventsOf(database.store, "boots", ["node.rebooted"])).toEqual([]);
  });
});
