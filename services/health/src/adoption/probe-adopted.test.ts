import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { releaseLease } from "@rollcall/store";
import { createTestDatabase, eventually, FakeAgents, type TestDatabase, until } from "@rollcall/testkit";
import { serveQueries } from "../testing/query-client.ts";
import { register } from "../testing/record.ts";
import { TestReplicas } from "../testing/test-replica.ts";

const agents = new FakeAgents();
const replicas = new TestReplicas();
let database: TestDatabase;

beforeAll(async () => {
  database = await createTestDatabase();
});

afterAll(async () => {
  agents.close();
  await replicas.close();
  await database.drop();
});

describe("AdoptedProber", () => {
  it("should count what still beats at a replica that is cut off from the record, until that is gone too", async () => {
    const { store } = database;
    const old = await replicas.start({ store });
    const agent = agents.create("beats-there");
    await register(store, [agent]);
    const stream = await agent.join(old.address);
    await stream.beatAcknowledged();
    const heir = await replicas.start({ store });
    // To answer it the heir has to find out where the old replica is.
    const reader = await serveQueries(heir);
    expect((await reader.client.getNodeHealth({ node: agent.nodeId })).nodeHealth?.latest).toBeUndefined();
    await reader.close();
    await old.cutOff();
    await releaseLease(store.db, old.instance, old.instance);
    heir.app.onLeaseHeld();
    const node = await until("the adoption", () => heir.app.replica.nodes.find("beats-there"));
    const stillHealthy = async () => {
      const beforeMs = node.watch.lastReceivedMs;
      await heir.pass(2_000);
      await stream.beatAcknowledged();
      await eventually(() => expect(node.watch.lastReceivedMs).toBeGreaterThan(beforeMs));
      expect(node.health.state).toBe("HEALTHY");
    };
    for (let turn = 0; turn < 4; turn++) await stillHealthy();
    await old.kill();
    await heir.pass(3_100);
    expect(node.health).toMatchObject({ state: "UNHEALTHY", reason: "HEARTBEATS_MISSED" });
  });
});
