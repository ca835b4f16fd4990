import { afterAll, afterEach, beforeAll, describe, expect, it } from "@jest/globals";
import { ErrorReason } from "@rollcall/api/rollcall/node/v1/error_reason_pb";
import { silentLogger } from "@rollcall/process";
import { openStore, type Store } from "@rollcall/store";
import { eventually, FakeAgents, startTestPostgres, type TestPostgres } from "@rollcall/testkit";
import { eventsOf, recordOf, register, statesOf } from "../testing/record.ts";
import { type TestReplica, TestReplicas } from "../testing/test-replica.ts";

const agents = new FakeAgents();
const replicas = new TestReplicas();
let postgres: TestPostgres;
let store: Store;
let replica: TestReplica;

beforeAll(async () => {
  postgres = await startTestPostgres();
  store = await openStore({
    url: postgres.url,
    poolSize: 8,
    log: silentLogger,
    applicationName: "outage",
  });
  replica = await replicas.start({ store });
});

afterEach(() => agents.close());

afterAll(async () => {
  await replicas.close();
  await store.close();
  await postgres.drop();
});

async function beating(nodeId: string) {
  const agent = agents.create(nodeId);
  await register(store, [agent]);
  const stream = await agent.join(replica.address);
  await stream.beatAcknowledged();
  await expectRecorded(nodeId, ["CONNECTED STREAM_OPENED", "HEALTHY HEARTBEAT_RECEIVED"]);
  return { agent, stream };
}

/**
 * Check the stored states of a node. Advances the replica's clock, because the replica's retry pauses follow it.
 */
const expectRecorded = (nodeId: string, states: readonly string[]) =>
  eventually(async () => {
    await replica.pass(100);
    expect(await statesOf(store, nodeId)).toEqual(states);
  });

describe("an unavailable store", () => {
  it("should declare no node wrongly, and write the current state afterwards", async () => {
    const steady = await beating("steady");
    const flapping = await beating("flapping");
    const silent = await beating("silent");
    await postgres.stop();
    // A stream breaks and another node falls silent. Both changes are in memory immediately.
    flapping.stream.breakConnection();
    for (let second = 0; second < 4; second++) {
      await steady.stream.beatAcknowledged();
      await replica.pass(1_000);
    }
    expect(replica.app.replica.nodes.find("silent")?.health.state).toBe("UNHEALTHY");
    expect(replica.app.replica.nodes.find("flapping")?.connection.state).toBe("DISCONNECTED");
    expect(replica.app.replica.nodes.find("steady")?.health.state).toBe("HEALTHY");
    steady.stream.send({ case: "nodeInfo", value: { hostname: "steady", cpu: { threads: 3 } } });
    await steady.stream.beatAcknowledged();
    await postgres.start();
    await eventually(async () => {
      await steady.stream.beatAcknowledged();
      await replica.pass(100);
      expect(await statesOf(store, "silent")).toEqual(["DISCONNECTED STREAM_STALE", "UNHEALTHY HEARTBEATS_MISSED"]);
      expect((await statesOf(store, "flapping"))[0]).toBe("DISCONNECTED STREAM_BROKEN");
      expect((await recordOf(store, "steady")).summary.cores).toBe(3);
    });
    expect(await statesOf(store, "steady")).toEqual(["CONNECTED STREAM_OPENED", "HEALTHY HEARTBEAT_RECEIVED"]);
    expect(await eventsOf(store, "steady", ["node.health.changed"])).toHaveLength(1);
    await silent.stream.end();
  });

  it("should never write a state that ended before the store came back", async () => {
    const { agent, stream } = await beating("passing");
    await postgres.stop();
    stream.breakConnection();
    await eventually(() => {
      expect(replica.app.replica.nodes.find("passing")?.connection.state).toBe("DISCONNECTED");
    });
    const away = agent.open(replica.address);
    await away.hello();
    const { goAway, error } = await away.end();
    expect(goAway?.reason).toBe(ErrorReason.STORE_UNAVAILABLE);
    expect(error?.retryAfterMs).toBeGreaterThanOrEqual(1_000);
    // The writer's clock does not advance, so the agent is back before the writer retries.
    await postgres.start();
    const again = await eventuallyJoined(agent);
    await again.beatAcknowledged();
    await expectRecorded("passing", ["CONNECTED STREAM_OPENED", "HEALTHY HEARTBEAT_RECEIVED"]);
    expect(await eventsOf(store, "passing", ["node.connection.changed"])).toHaveLength(1);
    expect(await eventsOf(store, "passing", ["node.health.changed"])).toHaveLength(1);
  });

  it("should keep its streams when the server is killed", async () => {
    const { stream } = await beating("unmoved");
    const { pid } = postgres.server;
    postgres.kill();
    await stream.beatAcknowledged();
    await eventually(async () => {
      await stream.beatAcknowledged();
      expect([pid, null]).not.toContain(postgres.server.pid);
      expect((await statesOf(store, "unmoved"))[0]).toBe("CONNECTED STREAM_OPENED");
    });
  });
});

async function eventuallyJoined(agent: ReturnType<FakeAgents["create"]>) {
  let joined: Awaited<ReturnType<typeof agent.join>> | undefined;
  await eventually(async () => {
    joined = await agent.join(replica.address);
  });
  if (joined === undefined) throw new Error("not joined");
  return joined;
}
