import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "@jest/globals";
import { GoAwayAction } from "@rollcall/api/rollcall/health/v1/health_pb";
import { ErrorReason } from "@rollcall/api/rollcall/node/v1/error_reason_pb";
import { createTestDatabase, eventually, FakeAgents, type TestDatabase } from "@rollcall/testkit";
import type { ManualClock } from "@rollcall/testkit/time";
import { eventsOf, register, statesOf } from "../testing/record.ts";
import { type TestReplica, TestReplicas } from "../testing/test-replica.ts";

const UNHEALTHY_AFTER_MS = 3_000;
const UNKNOWN_AFTER_MS = 9_000;

const agents = new FakeAgents();
const replicas = new TestReplicas();
let database: TestDatabase;
let replica: TestReplica;
let nodes = 0;

beforeAll(async () => {
  database = await createTestDatabase();
});

beforeEach(async () => {
  replica = await replicas.start({ store: await database.openStore() });
});

afterEach(async () => {
  agents.close();
  await replicas.close();
});

afterAll(() => database.drop());

async function newAgent() {
  nodes += 1;
  const agent = agents.create(`node${nodes}`);
  await register(database.store, [agent]);
  return agent;
}

/** Return an agent that has sent one heartbeat, so that its node is healthy. */
async function beating() {
  const agent = await newAgent();
  const stream = await agent.join(replica.address);
  await stream.beatAcknowledged();
  return { nodeId: agent.nodeId, agent, stream };
}

const detected = (nodeId: string) => replica.app.replica.nodes.find(nodeId)?.health.state;

const expectRecorded = (nodeId: string, states: readonly string[]) =>
  eventually(async () => expect(await statesOf(database.store, nodeId)).toEqual(states));

describe("FailureDetector", () => {
  it("should make a node healthy with its first Beat", async () => {
    const agent = await newAgent();
    const stream = await agent.join(replica.address);
    expect(detected(agent.nodeId)).toBe("UNKNOWN");
    await stream.beatAcknowledged();
    await expectRecorded(agent.nodeId, ["CONNECTED STREAM_OPENED", "HEALTHY HEARTBEAT_RECEIVED"]);
  });

  it("should declare a silent node at each threshold, not before", async () => {
    const { nodeId, stream } = await beating();
    await replica.pass(UNHEALTHY_AFTER_MS - 100);
    expect(detected(nodeId)).toBe("HEALTHY");
    await replica.pass(100);
    expect(detected(nodeId)).toBe("UNHEALTHY");
    const { goAway, error } = await stream.end();
    expect(goAway).toMatchObject({
      reason: ErrorReason.STREAM_STALE,
      action: GoAwayAction.RECONNECT,
    });
    expect(error?.reason).toBe("STREAM_STALE");
    await expectRecorded(nodeId, ["DISCONNECTED STREAM_STALE", "UNHEALTHY HEARTBEATS_MISSED"]);
    await replica.pass(UNKNOWN_AFTER_MS - UNHEALTHY_AFTER_MS - 100);
    expect(detected(nodeId)).toBe("UNHEALTHY");
    await replica.pass(100);
    await expectRecorded(nodeId, ["DISCONNECTED STREAM_STALE", "UNKNOWN HEARTBEATS_MISSED"]);
  });

  it("should bring a node back with the first Beat after its next Welcome, not before", async () => {
    const { nodeId, agent } = await beating();
    await replica.pass(UNHEALTHY_AFTER_MS);
    const again = await agent.join(replica.address);
    expect(detected(nodeId)).toBe("UNHEALTHY");
    await expectRecorded(nodeId, ["CONNECTED STREAM_OPENED", "UNHEALTHY HEARTBEATS_MISSED"]);
    again.send({ case: "nodeInfo", value: { hostname: "h" } });
    await replica.pass(200);
    expect(detected(nodeId)).toBe("UNHEALTHY");
    await again.beatAcknowledged();
    await expectRecorded(nodeId, ["CONNECTED STREAM_OPENED", "HEALTHY HEARTBEAT_RECEIVED"]);
    const changes = await eventsOf(database.store, nodeId, ["node.health.changed"]);
    expect(changes.map(({ after }) => after)).toMatchObject([
      { health: "HEALTHY" },
      { health: "UNHEALTHY", evidence: { silentMs: UNHEALTHY_AFTER_MS } },
      { health: "HEALTHY" },
    ]);
  });

  it("should count the time from the last frame of any kind", async () => {
    const { nodeId, stream } = await beating();
    await replica.pass(2_000);
    await stream.beatAcknowledged();
    await replica.pass(2_000);
    // Old and repeated Beats also count as signs of life, although they have no other effect.
    stream.send({ case: "beat", value: { sequence: 1 } });
    await stream.nextOf("ack");
    await replica.pass(UNHEALTHY_AFTER_MS - 100);
    expect(detected(nodeId)).toBe("HEALTHY");
    await replica.pass(100);
    expect(detected(nodeId)).toBe("UNHEALTHY");
  });

  it("should let health follow its threshold after a stream broke", async () => {
    const { nodeId, stream } = await beating();
    await replica.pass(1_000);
    stream.breakConnection();
    await expectRecorded(nodeId, ["DISCONNECTED STREAM_BROKEN", "HEALTHY HEARTBEAT_RECEIVED"]);
    await replica.pass(UNHEALTHY_AFTER_MS - 1_000);
    await expectRecorded(nodeId, ["DISCONNECTED STREAM_BROKEN", "UNHEALTHY HEARTBEATS_MISSED"]);
  });

  it("should keep a node healthy that comes back in time", async () => {
    const { nodeId, agent, stream } = await beating();
    stream.breakConnection();
    await expectRecorded(nodeId, ["DISCONNECTED STREAM_BROKEN", "HEALTHY HEARTBEAT_RECEIVED"]);
    await replica.pass(2_500);
    const again = await agent.join(replica.address);
    await replica.pass(2_500);
    await again.beatAcknowledged();
    await expectRecorded(nodeId, ["CONNECTED STREAM_OPENED", "HEALTHY HEARTBEAT_RECEIVED"]);
    const changes = await eventsOf(database.store, nodeId, ["node.health.changed"]);
    expect(changes).toHaveLength(1);
  });

  it("should end the stream of a welcomed agent that never sends a heartbeat", async () => {
    const agent = await newAgent();
    const stream = await agent.join(replica.address);
    await replica.pass(UNHEALTHY_AFTER_MS - 100);
    expect(stream.ended).toBeUndefined();
    await replica.pass(300);
    expect((await stream.end()).error?.reason).toBe("STREAM_STALE");
    await expectRecorded(agent.nodeId, ["DISCONNECTED STREAM_BROKEN", "UNKNOWN NEVER_CONNECTED"]);
  });
});

describe("silence that is not the nodes' fault", () => {
  it("should extend every node's deadline by the time that the process was paused", async () => {
    const { nodeId, stream } = await beating();
    const other = await beating();
    await replica.pass(1_000);
    (replica.clock as ManualClock).advance(60_000);
    replica.app.replica.evaluate();
    await replica.pass(1_000);
    expect([detected(nodeId), detected(other.nodeId)]).toEqual(["HEALTHY", "HEALTHY"]);
    await stream.beatAcknowledged();
    await replica.pass(1_000);
    expect([detected(nodeId), detected(other.nodeId)]).toEqual(["HEALTHY", "UNHEALTHY"]);
    const lost = await replica.metric("rollcall_health_observation_lost_seconds_total");
    expect(lost).toBeGreaterThan(59);
    expect(lost).toBeLessThanOrEqual(60);
  });

  it("should declare no node while its lease is in doubt, and extend deadlines by that time afterwards", async () => {
    const { nodeId, stream } = await beating();
    const other = await beating();
    await replica.pass(2_000);
    replica.app.onLeaseDoubt({ sinceMs: replica.clock.nowMs() - 1_000 });
    await replica.pass(60_000);
    // Streams continue normally.
    await stream.beatAcknowledged();
    expect([detected(nodeId), detected(other.nodeId)]).toEqual(["HEALTHY", "HEALTHY"]);
    await replica.takeLease();
    // Only 1 s of silence counts: the time until the doubt about the lease began.
    await replica.pass(1_900);
    expect(detected(other.nodeId)).toBe("HEALTHY");
    await replica.pass(200);
    expect([detected(nodeId), detected(other.nodeId)]).toEqual(["HEALTHY", "UNHEALTHY"]);
  });

  it("should give a node whose Hello is turned away that delay plus its full grace period", async () => {
    const { nodeId, agent, stream } = await beating();
    const other = await beating();
    stream.breakConnection();
    await expectRecorded(nodeId, ["DISCONNECTED STREAM_BROKEN", "HEALTHY HEARTBEAT_RECEIVED"]);
    await replica.pass(2_000);
    replica.app.onLeaseDoubt({ sinceMs: replica.clock.nowMs() });
    const turnedAway = agent.open(replica.address);
    await turnedAway.hello();
    const { error } = await turnedAway.end();
    await replica.takeLease();
    const retryAfterMs = error?.retryAfterMs ?? 0;
    expect(retryAfterMs).toBeGreaterThan(0);
    await replica.pass(UNHEALTHY_AFTER_MS);
    expect([detected(nodeId), detected(other.nodeId)]).toEqual(["HEALTHY", "UNHEALTHY"]);
    await replica.pass(retryAfterMs + 100);
    expect(detected(nodeId)).toBe("UNHEALTHY");
  });

  it("should extend nothing for a caller that only claims to be the node", async () => {
    const { nodeId, stream } = await beating();
    stream.breakConnection();
    await expectRecorded(nodeId, ["DISCONNECTED STREAM_BROKEN", "HEALTHY HEARTBEAT_RECEIVED"]);
    replica.app.onLeaseDoubt({ sinceMs: replica.clock.nowMs() });
    const liar = agents.create(nodeId).open(replica.address);
    await liar.hello();
    await liar.end();
    await replica.takeLease();
    await replica.pass(UNHEALTHY_AFTER_MS);
    expect(detected(nodeId)).toBe("UNHEALTHY");
  });

  it("should report how late it was", async () => {
    await beating();
    await replica.pass(UNHEALTHY_AFTER_MS);
    const count = 'rollcall_health_detection_delay_seconds_bucket{le="0.2"}';
    expect(await replica.metric(count)).toBe(1);
    expect(await replica.metric("rollcall_health_loop_lag_seconds_count")).toBeGreaterThan(10);
  });
});
