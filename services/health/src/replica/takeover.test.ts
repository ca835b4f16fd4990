import { afterAll, afterEach, beforeAll, describe, expect, it } from "@jest/globals";
import { GoAwayAction } from "@rollcall/api/rollcall/health/v1/health_pb";
import { expireLease, listLeases, type Store } from "@rollcall/store";
import { createTestDatabase, eventually, type FakeAgent, FakeAgents, type TestDatabase } from "@rollcall/testkit";
import { eventsOf, recordOf, register, statesOf } from "../testing/record.ts";
import { type TestReplica, TestReplicas } from "../testing/test-replica.ts";

const agents = new FakeAgents();
let database: TestDatabase;
const replicas = new TestReplicas();

beforeAll(async () => {
  database = await createTestDatabase();
});

afterEach(async () => {
  agents.close();
  await replicas.close();
});

afterAll(() => database.drop());

async function startReplica(): Promise<TestReplica> {
  return replicas.start({ store: await database.openStore() });
}

/** End the replica as SIGKILL does, including its agents' connections. */
async function killReplica(replica: TestReplica): Promise<void> {
  agents.close();
  await replica.kill();
}

async function expire(store: Store, { instance }: TestReplica): Promise<void> {
  const lease = (await listLeases(store.db)).find((it) => it.name === instance);
  if (lease !== undefined) await expireLease(store.db, lease);
}

async function registered(nodeId: string): Promise<FakeAgent> {
  const agent = agents.create(nodeId);
  await register(database.store, [agent]);
  return agent;
}

const expectRecorded = (nodeId: string, states: readonly string[]) =>
  eventually(async () => expect(await statesOf(database.store, nodeId)).toEqual(states));

const expectHeld = (replica: TestReplica, nodes: readonly FakeAgent[]) =>
  eventually(() => {
    const held = nodes.filter(({ nodeId }) => replica.app.replica.nodes.find(nodeId) !== undefined);
    expect(held).toHaveLength(nodes.length);
  });

const HEALTHY = ["CONNECTED STREAM_OPENED", "HEALTHY HEARTBEAT_RECEIVED"];

describe("two replicas", () => {
  it("should leave a node with the replica that took it last", async () => {
    const [first, second] = [await startReplica(), await startReplica()];
    const agent = await registered("moved");
    const older = await agent.join(first.address);
    await older.beatAcknowledged();
    await expectRecorded("moved", HEALTHY);
    const newer = await agent.join(second.address);
    const { error } = await older.end();
    expect(error?.reason).toBe("SESSION_SUPERSEDED");
    expect(first.app.replica.nodes.find("moved")).toBeUndefined();
    await newer.beatAcknowledged();
    // The first replica no longer decides the node's health, although the node stays silent on it.
    await first.pass(12_000);
    expect(await statesOf(database.store, "moved")).toEqual(HEALTHY);
    expect((await recordOf(database.store, "moved")).session).toMatchObject({
      epoch: 2,
      replicaId: second.instance,
    });
    const health = await eventsOf(database.store, "moved", ["node.health.changed"]);
    expect(health).toHaveLength(1);
  });

  it("should forget a node that has moved when a write shows it", async () => {
    const replica = await startReplica();
    const agent = await registered("stealthy");
    const stream = await agent.join(replica.address);
    await stream.beatAcknowledged();
    await expectRecorded("stealthy", HEALTHY);
    // Take over the node as another replica does, but without the event.
    await database.store.db
      .updateTable("node_sessions")
      .set({ epoch: 9, replica_id: "another" })
      .where("node_id", "=", "stealthy")
      .execute();
    stream.breakConnection();
    await eventually(() => expect(replica.app.replica.nodes.find("stealthy")).toBeUndefined());
    expect(await statesOf(database.store, "stealthy")).toEqual(HEALTHY);
  });

  it("should not write a report of a fenced stream", async () => {
    const replica = await startReplica();
    const agent = await registered("late");
    const stream = await agent.join(replica.address);
    await stream.beatAcknowledged();
    await expectRecorded("late", HEALTHY);
    await database.store.db
      .updateTable("node_sessions")
      .set({ epoch: 9, replica_id: "another" })
      .where("node_id", "=", "late")
      .execute();
    stream.send({ case: "nodeInfo", value: { hostname: "late" } });
    stream.send({ case: "goodbye", value: {} });
    await stream.end();
    await eventually(() => expect(replica.app.replica.nodes.find("late")).toBeUndefined());
    expect((await recordOf(database.store, "late")).info).toBeNull();
    expect(await statesOf(database.store, "late")).toEqual(HEALTHY);
  });
});

describe("a replica that is lost", () => {
  it("should lose its nodes to another replica once its lease has expired, each with its full grace period", async () => {
    const [lost, heir] = [await startReplica(), await startReplica()];
    const crowd = await Promise.all(["heir1", "heir2", "heir3"].map(registered));
    for (const agent of crowd) await (await agent.join(lost.address)).beatAcknowledged();
    await expectRecorded("heir3", HEALTHY);
    await killReplica(lost);
    // While the lease row exists, no replica adopts the nodes, however much time passes.
    await heir.pass(20_000);
    await heir.takeLease();
    expect(heir.app.replica.nodes.find("heir1")).toBeUndefined();
    await expire(database.store, lost);
    await heir.takeLease();
    await expectHeld(heir, crowd);
    const disconnected = ["DISCONNECTED REPLICA_LOST", "HEALTHY HEARTBEAT_RECEIVED"];
    expect(await statesOf(database.store, "heir1")).toEqual(disconnected);
    await heir.pass(2_500);
    expect(await statesOf(database.store, "heir1")).toEqual(disconnected);
    // One node comes back in time; the others do not.
    const [first] = crowd;
    await (await first?.join(heir.address))?.beatAcknowledged();
    await heir.pass(1_000);
    await expectRecorded("heir1", HEALTHY);
    await expectRecorded("heir3", ["DISCONNECTED REPLICA_LOST", "UNHEALTHY HEARTBEATS_MISSED"]);
    const changes = await eventsOf(database.store, "heir1", ["node.health.changed"]);
    expect(changes).toHaveLength(1);
  });

  it("should not change the health of nodes that were unhealthy", async () => {
    const lost = await startReplica();
    const [ill, gone] = [await registered("ill"), await registered("gone")];
    for (const agent of [ill, gone]) await (await agent.join(lost.address)).beatAcknowledged();
    await lost.pass(4_000);
    await expectRecorded("ill", ["DISCONNECTED STREAM_STALE", "UNHEALTHY HEARTBEATS_MISSED"]);
    await killReplica(lost);
    await expire(database.store, lost);
    const heir = await startReplica();
    await expectHeld(heir, [ill, gone]);
    await heir.pass(8_800);
    expect(heir.app.replica.nodes.find("ill")?.health.state).toBe("UNHEALTHY");
    await heir.pass(300);
    await expectRecorded("ill", ["DISCONNECTED STREAM_STALE", "UNKNOWN HEARTBEATS_MISSED"]);
  });

  it("should lose its nodes to its own successor at once when its lease is gone", async () => {
    const before = await startReplica();
    const agent = await registered("restarted");
    await (await agent.join(before.address)).beatAcknowledged();
    await expectRecorded("restarted", HEALTHY);
    await killReplica(before);
    await expire(database.store, before);
    const after = await startReplica();
    await expectRecorded("restarted", ["DISCONNECTED REPLICA_LOST", "HEALTHY HEARTBEAT_RECEIVED"]);
    await after.pass(2_900);
    await (await agent.join(after.address)).beatAcknowledged();
    await expectRecorded("restarted", HEALTHY);
  });

  it("should end its streams when it returns and another replica owns its nodes", async () => {
    const [doubtful, heir] = [await startReplica(), await startReplica()];
    const agent = await registered("doubted");
    const stream = await agent.join(doubtful.address);
    await stream.beatAcknowledged();
    await expectRecorded("doubted", HEALTHY);
    doubtful.app.onLeaseDoubt({ sinceMs: doubtful.clock.nowMs() });
    await expire(database.store, doubtful);
    await heir.takeLease();
    await eventually(() => expect(heir.app.replica.nodes.find("doubted")).toBeDefined());
    const { error } = await stream.end();
    expect(error?.reason).toBe("SESSION_SUPERSEDED");
    // The agent was not at fault, so it must not have to wait for half a minute.
    expect(error?.retryAfterMs ?? 0).toBeLessThanOrEqual(2_000);
    await doubtful.takeLease();
    await (await agent.join(doubtful.address)).beatAcknowledged();
    await expectRecorded("doubted", HEALTHY);
    await eventually(() => expect(heir.app.replica.nodes.find("doubted")).toBeUndefined());
  });
});

describe("a replica that shuts down", () => {
  it("should move its agents, and disconnect none", async () => {
    const ending = await startReplica();
    const crowd = await Promise.all(["end1", "end2", "end3"].map(registered));
    const streams = await Promise.all(crowd.map((agent) => agent.join(ending.address)));
    for (const stream of streams) await stream.beatAcknowledged();
    await ending.close();
    for (const stream of streams) {
      const { goAway, error } = await stream.end();
      expect(error?.reason).toBe("SERVER_SHUTTING_DOWN");
      expect(goAway?.action).toBe(GoAwayAction.RECONNECT);
      expect(error?.retryAfterMs ?? -1).toBeGreaterThanOrEqual(0);
      expect(error?.retryAfterMs ?? -1).toBeLessThanOrEqual(1_000);
    }
    expect(await statesOf(database.store, "end1")).toEqual(HEALTHY);
    const successor = await startReplica();
    await expectHeld(successor, crowd);
    await Promise.all(crowd.map((agent) => agent.join(successor.address)));
    await expectRecorded("end1", HEALTHY);
  });

  it("should write pending changes before it ends", async () => {
    const ending = await startReplica();
    const stream = await (await registered("last")).join(ending.address);
    await stream.beatAcknowledged();
    stream.send({ case: "goodbye", value: {} });
    await stream.end();
    await ending.close();
    expect(await statesOf(database.store, "last")).toEqual(["DISCONNECTED AGENT_SHUTDOWN", "UNHEALTHY AGENT_SHUTDOWN"]);
  });
});
