import { durationMs } from "@bufbuild/protobuf/wkt";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "@jest/globals";
import { createTestDatabase, eventually, FakeAgents, type FakeStream, type TestDatabase } from "@rollcall/testkit";
import { register } from "../testing/record.ts";
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

/**
 * Start a replica with a budget of four heartbeats a second, for agents that each send two a second. With three agents,
 * the intervals are stretched; with four, they are as long as the policy allows.
 */
async function startReplica(): Promise<TestReplica> {
  const config = { "Health.HeartbeatsPerSecond": 4, "Compute.Heartbeat.Interval": 500 };
  return replicas.start({ store: await database.openStore(), config });
}

async function joined(replica: TestReplica, nodeId: string): Promise<FakeStream> {
  const agent = agents.create(nodeId);
  await register(database.store, [agent]);
  const stream = await agent.join(replica.address);
  await stream.beatAcknowledged();
  return stream;
}

/** The interval that the next Ack carries. */
async function nextInterval(stream: FakeStream): Promise<number> {
  stream.beat();
  return (await stream.nextOf("ack")).nextIntervalMs;
}

describe("a replica with a budget of heartbeats", () => {
  it("should stretch all intervals as agents arrive, and turn away those that do not fit", async () => {
    const replica = await startReplica();
    const streams = [await joined(replica, "p1"), await joined(replica, "p2")];
    await replica.pass(100);
    expect(await nextInterval(streams[0] as FakeStream)).toBe(0);

    streams.push(await joined(replica, "p3"));
    await replica.pass(100);
    for (const stream of streams) {
      const intervalMs = await nextInterval(stream);
      // With three agents and four heartbeats a second, the interval is 750 ms or one step more.
      expect(intervalMs).toBeGreaterThanOrEqual(750);
      expect(intervalMs).toBeLessThanOrEqual(825);
      // The interval is sent only once.
      expect(await nextInterval(stream)).toBe(0);
    }

    streams.push(await joined(replica, "p4"));
    await replica.pass(100);
    for (const stream of streams) expect(await nextInterval(stream)).toBe(1_000);

    const fifth = agents.create("p5");
    await register(database.store, [fifth]);
    const refused = fifth.open(replica.address);
    await refused.hello();
    const { error } = await refused.end();
    expect(error?.reason).toBe("OVERLOADED");
    expect(error?.retryAfterMs).toBeGreaterThan(0);
  });

  it("should shorten them again when agents have left", async () => {
    const replica = await startReplica();
    const crowd = await Promise.all(["q1", "q2", "q3", "q4"].map((id) => joined(replica, id)));
    await replica.pass(100);
    const [stays, ...others] = crowd as [FakeStream, ...FakeStream[]];
    expect(await nextInterval(stays)).toBe(1_000);
    for (const stream of others) stream.breakConnection();
    await eventually(() => expect(replica.app.replica.nodes.sessions).toBe(1));
    await replica.pass(100);
    expect(await nextInterval(stays)).toBe(500);
  });

  it("should send a new agent the current interval", async () => {
    const replica = await startReplica();
    for (const id of ["r1", "r2", "r3"]) await joined(replica, id);
    await replica.pass(100);
    const agent = agents.create("r4");
    await register(database.store, [agent]);
    const { welcome } = await agent.join(replica.address);
    const interval = welcome.settings?.heartbeatInterval;
    expect(interval && durationMs(interval)).toBeGreaterThanOrEqual(750);
  });
});
