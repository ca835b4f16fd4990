import { durationFromMs, durationMs } from "@bufbuild/protobuf/wkt";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "@jest/globals";
import type { Settings } from "@rollcall/api/rollcall/health/v1/health_pb";
import { expireLease, listLeases } from "@rollcall/store";
import {
  createTestDatabase,
  eventually,
  type FakeAgent,
  FakeAgents,
  type FakeStream,
  type TestDatabase,
} from "@rollcall/testkit";
import { heldToProto } from "../convert.ts";
import { deletePolicy, groupPolicy, setOperatorLabel, setPolicy } from "../testing/policies.ts";
import { command, register } from "../testing/record.ts";
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
  await database.store.db.deleteFrom("health_policies").execute();
});

afterAll(() => database.drop());

async function startReplica(): Promise<TestReplica> {
  return replicas.start({ store: await database.openStore() });
}

async function registered(nodeId: string): Promise<FakeAgent> {
  const agent = agents.create(nodeId);
  await register(database.store, [agent]);
  return agent;
}

async function joined(replica: TestReplica, nodeId: string): Promise<FakeStream> {
  const stream = await (await registered(nodeId)).join(replica.address);
  await stream.beatAcknowledged(undefined, 1);
  return stream;
}

const thresholdsOf = (replica: TestReplica, nodeId: string) =>
  Object.values(replica.app.replica.nodes.find(nodeId)?.timing.thresholds ?? {});

const told = ({ heartbeatInterval, unhealthyAfter, generation }: Settings) => ({
  heartbeatMs: heartbeatInterval === undefined ? 0 : durationMs(heartbeatInterval),
  unhealthyAfterMs: unhealthyAfter === undefined ? 0 : durationMs(unhealthyAfter),
  generation,
});

const LAXER = { unhealthyAfterMs: 6_000, heartbeatIntervalMs: 2_000 };
const TIGHTER = { unhealthyAfterMs: 1_500, heartbeatIntervalMs: 500 };

describe("a policy that is set", () => {
  it("should reach the agents of every replica", async () => {
    const [first, second] = [await startReplica(), await startReplica()];
    const streams = [await joined(first, "all1"), await joined(second, "all2")];
    await setPolicy(database.store, { kind: "default", override: LAXER });
    for (const stream of streams) {
      const settings = await stream.nextOf("settings");
      expect(told(settings)).toEqual({
        heartbeatMs: 2_000,
        unhealthyAfterMs: 6_000,
        generation: 2,
      });
    }
  });

  it("should apply to a node that connects later", async () => {
    const replica = await startReplica();
    const agent = await registered("later");
    await setOperatorLabel(database.store, "later", { key: "gpu", value: "h100" });
    await setPolicy(database.store, groupPolicy("gpus", "gpu", LAXER));
    await replica.caughtUp();
    const { welcome } = await agent.join(replica.address);
    expect(welcome.settings && told(welcome.settings)).toEqual({
      heartbeatMs: 2_000,
      unhealthyAfterMs: 6_000,
      generation: 1,
    });
    expect(thresholdsOf(replica, "later")).toEqual([6_000, 9_000]);
  });

  it("should be known to a replica that starts later", async () => {
    await setPolicy(database.store, { kind: "default", override: LAXER });
    const replica = await startReplica();
    const { welcome } = await (await registered("starts")).join(replica.address);
    expect(welcome.settings && told(welcome.settings).unhealthyAfterMs).toBe(6_000);
  });

  it("should not affect nodes that it does not select", async () => {
    const replica = await startReplica();
    const [chosen, other] = [await joined(replica, "chosen"), await joined(replica, "other")];
    await setPolicy(database.store, { kind: "node", nodeId: "chosen", override: LAXER });
    await chosen.nextOf("settings");
    await other.beatAcknowledged();
    expect(other.pending.filter(({ frame }) => frame.case === "settings")).toEqual([]);
    expect(thresholdsOf(replica, "other")).toEqual([3_000, 9_000]);
  });

  it("should ignore labels that a node reports about itself", async () => {
    const replica = await startReplica();
    const stream = await joined(replica, "boaster");
    await database.store.db
      .insertInto("node_labels")
      .values({ node_id: "boaster", tier: "agent", key: "gpu", value: "x", effective: true })
      .execute();
    await setPolicy(database.store, groupPolicy("gpus", "gpu", LAXER));
    await setPolicy(database.store, { kind: "default", override: { infoIntervalMs: 5_000 } });
    expect(told(await stream.nextOf("settings")).unhealthyAfterMs).toBe(3_000);
  });
});

describe("a policy that lets agents shorten", () => {
  const wish = {
    wishedHeartbeatInterval: durationFromMs(1_250),
    wishedInfoInterval: durationFromMs(20_000),
  };

  it("should grant an agent's requested intervals as soon as it is set, and change no threshold", async () => {
    const replica = await startReplica();
    await setPolicy(database.store, { kind: "default", override: LAXER });
    await replica.caughtUp();
    const agent = await registered("eager");
    const stream = agent.open(replica.address);
    await stream.hello(wish);
    const { settings: refused } = await stream.nextOf("welcome");
    expect(refused && told(refused).heartbeatMs).toBe(2_000);
    expect(refused?.infoInterval).toEqual(durationFromMs(60_000));

    const override = { ...LAXER, agentMayShorten: true };
    await setPolicy(database.store, { kind: "default", override });
    const settings = await stream.nextOf("settings");
    // The interval is rounded to steps of 100 ms.
    expect(told(settings)).toEqual({ heartbeatMs: 1_300, unhealthyAfterMs: 6_000, generation: 2 });
    expect(settings.infoInterval).toEqual(durationFromMs(20_000));
    expect(thresholdsOf(replica, "eager")).toEqual([6_000, 9_000]);
    const node = replica.app.replica.nodes.find("eager");
    const options = { replicaId: "r", withSamples: false, clock: replica.clock };
    expect(node && heldToProto(node, { ...options, health: node.health })).toMatchObject({
      ...wish,
      heartbeatInterval: durationFromMs(1_300),
      infoInterval: durationFromMs(20_000),
    });
  });

  it("should stretch shorter intervals when the agents exceed the budget", async () => {
    const config = { "Health.HeartbeatsPerSecond": 2, "Compute.Heartbeat.Interval": 2_000 };
    const replica = await replicas.start({
      store: await database.openStore(),
      config: { ...config, "Orchestrator.NodeManager.DisconnectTimeout": 6_000 },
    });
    await setPolicy(database.store, { kind: "default", override: { agentMayShorten: true } });
    await replica.caughtUp();
    const streams: FakeStream[] = [];
    for (const id of ["b1", "b2", "b3"]) {
      const stream = (await registered(id)).open(replica.address);
      await stream.hello({ wishedHeartbeatInterval: durationFromMs(1_000) });
      await stream.nextOf("welcome");
      await stream.beatAcknowledged();
      streams.push(stream);
    }
    await replica.pass(100);
    for (const stream of streams) {
      stream.beat();
      // With three agents and two heartbeats a second, the interval is 1.5 s, or up to 100 ms longer because of
      // rounding.
      const { nextIntervalMs } = await stream.nextOf("ack");
      expect(nextIntervalMs).toBeGreaterThanOrEqual(1_500);
      expect(nextIntervalMs).toBeLessThanOrEqual(1_700);
    }
  });
});

describe("a threshold", () => {
  it("should apply at once when it becomes longer", async () => {
    const replica = await startReplica();
    await joined(replica, "longer");
    await setPolicy(database.store, { kind: "default", override: LAXER });
    await eventually(() => expect(thresholdsOf(replica, "longer")).toEqual([6_000, 9_000]));
  });

  it("should apply once its settings are acknowledged when it becomes shorter", async () => {
    const replica = await startReplica();
    const stream = await joined(replica, "shorter");
    await setPolicy(database.store, { kind: "default", override: TIGHTER });
    const { generation } = await stream.nextOf("settings");
    // A Beat that was in transit does not acknowledge the new settings.
    await stream.beatAcknowledged();
    await replica.pass(2_900);
    expect(replica.app.replica.nodes.find("shorter")?.health.state).toBe("HEALTHY");
    await stream.beatAcknowledged(undefined, generation);
    expect(thresholdsOf(replica, "shorter")).toEqual([1_500, 9_000]);
    await replica.pass(1_600);
    expect(replica.app.replica.nodes.find("shorter")?.health.state).toBe("UNHEALTHY");
  });

  it("should not apply on acknowledgement of earlier settings when it becomes shorter", async () => {
    const replica = await startReplica();
    const stream = await joined(replica, "earlier");
    await setPolicy(database.store, { kind: "default", override: TIGHTER });
    const { generation } = await stream.nextOf("settings");
    await stream.beatAcknowledged(undefined, generation - 1);
    expect(thresholdsOf(replica, "earlier")).toEqual([3_000, 9_000]);
    await setPolicy(database.store, { kind: "default", override: { ...TIGHTER, unhealthyAfterMs: 1_800 } });
    const last = await stream.nextOf("settings");
    await stream.beatAcknowledged(undefined, generation);
    expect(thresholdsOf(replica, "earlier")).toEqual([3_000, 9_000]);
    await stream.beatAcknowledged(undefined, last.generation);
    expect(thresholdsOf(replica, "earlier")).toEqual([1_800, 9_000]);
  });

  it("should apply after two of the previous intervals for an agent that never acknowledges", async () => {
    const replica = await startReplica();
    const stream = await (await registered("old")).join(replica.address);
    await stream.beatAcknowledged();
    await setPolicy(database.store, { kind: "default", override: TIGHTER });
    await stream.nextOf("settings");
    await replica.pass(1_900);
    await stream.beatAcknowledged();
    expect(thresholdsOf(replica, "old")).toEqual([3_000, 9_000]);
    await replica.pass(200);
    await stream.beatAcknowledged();
    expect(thresholdsOf(replica, "old")).toEqual([1_500, 9_000]);
  });

  it("should not become shorter for a disconnected node before it gets its settings", async () => {
    const replica = await startReplica();
    const stream = await joined(replica, "away");
    stream.breakConnection();
    await eventually(() => expect(replica.app.replica.nodes.sessions).toBe(0));
    await setPolicy(database.store, { kind: "default", override: TIGHTER });
    await replica.caughtUp();
    await replica.pass(1_600);
    expect(thresholdsOf(replica, "away")).toEqual([3_000, 9_000]);
  });
});

describe("a node", () => {
  it("should move between groups as its labels change", async () => {
    const replica = await startReplica();
    const stream = await joined(replica, "moving");
    await setPolicy(database.store, groupPolicy("gpus", "gpu", LAXER));
    await setOperatorLabel(database.store, "moving", { key: "gpu", value: "h100" });
    const joinedGroup = await stream.nextOf("settings");
    expect(told(joinedGroup).unhealthyAfterMs).toBe(6_000);
    expect(joinedGroup.labels).toMatchObject([{ key: "gpu", value: "h100" }]);
    await setOperatorLabel(database.store, "moving", null);
    const left = await stream.nextOf("settings");
    expect(told(left).unhealthyAfterMs).toBe(3_000);
    await stream.beatAcknowledged(undefined, left.generation);
    expect(thresholdsOf(replica, "moving")).toEqual([3_000, 9_000]);
  });

  it("should fall back to the next policy when one is deleted", async () => {
    const replica = await startReplica();
    const stream = await joined(replica, "fallen");
    await setPolicy(database.store, { kind: "default", override: { unhealthyAfterMs: 5_000 } });
    await setPolicy(database.store, { kind: "node", nodeId: "fallen", override: LAXER });
    await eventually(() => expect(thresholdsOf(replica, "fallen")).toEqual([6_000, 9_000]));
    await deletePolicy(database.store, { kind: "node", nodeId: "fallen" });
    await eventually(async () => {
      const { unhealthyAfterMs } = told(await stream.nextOf("settings"));
      expect(unhealthyAfterMs).toBe(5_000);
    });
  });

  it("should lose its own policy when it is deleted", async () => {
    const replica = await startReplica();
    await joined(replica, "gone");
    await setPolicy(database.store, { kind: "node", nodeId: "gone", override: LAXER });
    await eventually(() => expect(thresholdsOf(replica, "gone")).toEqual([6_000, 9_000]));
    await command(database.store, "gone", "delete");
    await replica.caughtUp();
    expect(replica.app.replica.policies.policies.nodes.size).toBe(0);
    await joined(replica, "gone");
    expect(thresholdsOf(replica, "gone")).toEqual([3_000, 9_000]);
  });

  it("should have its policy on the replica that adopts it", async () => {
    const lost = await startReplica();
    await joined(lost, "orphan");
    await setOperatorLabel(database.store, "orphan", { key: "gpu", value: "h100" });
    await setPolicy(database.store, groupPolicy("gpus", "gpu=h100", LAXER));
    agents.close();
    await lost.kill();
    const leases = await listLeases(database.store.db);
    const lease = leases.find(({ name }) => name === lost.instance);
    if (lease !== undefined) await expireLease(database.store.db, lease);
    const heir = await startReplica();
    await eventually(() => expect(thresholdsOf(heir, "orphan")).toEqual([6_000, 9_000]));
  });
});
