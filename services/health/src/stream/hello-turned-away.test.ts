import { afterAll, afterEach, beforeAll, describe, expect, it } from "@jest/globals";
import { GoAwayAction } from "@rollcall/api/rollcall/health/v1/health_pb";
import { ErrorReason } from "@rollcall/api/rollcall/node/v1/error_reason_pb";
import { createTestDatabase, eventually, type FakeAgent, FakeAgents, type TestDatabase } from "@rollcall/testkit";
import { command, register } from "../testing/record.ts";
import { TestReplicas } from "../testing/test-replica.ts";

const agents = new FakeAgents();
const replicas = new TestReplicas();
let database: TestDatabase;

beforeAll(async () => {
  database = await createTestDatabase();
});

afterEach(async () => {
  agents.close();
  await replicas.close();
});

afterAll(() => database.drop());

describe("Hello, turned away", () => {
  it("should tell agents when to retry while the lease is not held", async () => {
    const store = await database.openStore();
    const doubtful = await replicas.start({ store });
    doubtful.app.onLeaseDoubt({ sinceMs: doubtful.clock.nowMs() });
    const agent = agents.create("early");
    await register(store, [agent]);
    const stream = agent.open(doubtful.address);
    await stream.hello();
    const { goAway, error } = await stream.end();
    expect(goAway).toMatchObject({
      reason: ErrorReason.STORE_UNAVAILABLE,
      action: GoAwayAction.RECONNECT,
    });
    expect(error?.retryAfterMs).toBeGreaterThanOrEqual(1_000);
    expect(doubtful.app.ready().agents?.ok).toBe(false);
    await doubtful.takeLease();
    await agent.join(doubtful.address);
    expect(doubtful.app.ready().agents?.ok).toBe(true);
  });

  it("should turn away Hellos beyond its queue, and give the node its grace period", async () => {
    const store = await database.openStore();
    const small = await replicas.start({ store, config: { "Health.HelloQueue": 1 } });
    const crowd = Array.from({ length: 40 }, (_, index) => agents.create(`queue${index}`));
    await register(store, crowd);
    const streams = crowd.map((agent) => agent.open(small.address));
    await Promise.all(
      streams.map((stream) => stream.nextOf("challenge").then((challenge) => [stream, challenge] as const)),
    ).then((challenged) => {
      for (const [index, [stream, challenge]] of challenged.entries()) {
        const agent = crowd[index] as FakeAgent;
        const value = { nodeId: agent.nodeId, signature: agent.sign(challenge) };
        stream.send({ case: "hello", value });
      }
    });
    await eventually(() => {
      const answered = streams.filter((it) => it.ended !== undefined || it.pending.length > 0);
      expect(answered).toHaveLength(40);
    });
    const away = streams.filter(({ ended }) => ended !== undefined);
    expect(away.length).toBeGreaterThan(0);
    for (const stream of away) {
      const { goAway, error } = await stream.end();
      expect(goAway?.reason).toBe(ErrorReason.OVERLOADED);
      expect(error?.retryAfterMs).toBeGreaterThanOrEqual(1_000);
    }
  });

  it("should turn away Hellos beyond its rate, and extend the node's deadline by the wait", async () => {
    const store = await database.openStore();
    const config = { "Health.HellosPerSecond": 2 };
    const slow = await replicas.start({ store, config, random: () => 0 });
    const crowd = ["rate0", "rate1", "rate2"].map((nodeId) => agents.create(nodeId));
    await register(store, crowd);
    const [first, second, third] = crowd as [FakeAgent, FakeAgent, FakeAgent];
    await (await first.join(slow.address)).beatAcknowledged();
    const stream = await second.join(slow.address);
    await stream.beatAcknowledged();
    // When the agent returns after its stream broke, the first two admissions have used up the rate.
    stream.breakConnection();
    await eventually(() => expect(slow.app.replica.nodes.sessions).toBe(1));
    const again = second.open(slow.address);
    await again.hello();
    const { error } = await again.end();
    expect(error).toMatchObject({ reason: "OVERLOADED", retryAfterMs: 1_000 });
    const late = third.open(slow.address);
    await late.hello();
    expect((await late.end()).error?.reason).toBe("OVERLOADED");
    // The threshold of 3 s counts from the time at which the agent was allowed to return, not from its last Beat.
    await slow.pass(3_900);
    expect(slow.app.replica.nodes.find("rate1")?.health.state).toBe("HEALTHY");
    await slow.pass(200);
    expect(slow.app.replica.nodes.find("rate1")?.health.state).toBe("UNHEALTHY");
    await second.join(slow.address);
  });

  it("should refuse retries of rejected nodes without using up the admission rate, until they are approved", async () => {
    const store = await database.openStore();
    // Three Hellos use up the rate: the first rejected one, the impostor's, and the one after the approval.
    const config = { "Health.HellosPerSecond": 3 };
    const replica = await replicas.start({ store, config });
    const outcast = agents.create("outcast");
    await register(store, [outcast], "REJECTED");
    const reasonOf = async (agent: FakeAgent) => {
      const stream = agent.open(replica.address);
      await stream.hello();
      return (await stream.end()).error?.reason;
    };
    for (let time = 0; time < 10; time++) expect(await reasonOf(outcast)).toBe("NODE_REJECTED");
    const impostor = agents.create("outcast");
    expect(await reasonOf(impostor)).toBe("PROOF_INVALID");
    await command(store, "outcast", "approve");
    await replica.caughtUp();
    const { welcome } = await outcast.join(replica.address);
    expect(welcome.sessionEpoch).toBe(1n);
  });
});
