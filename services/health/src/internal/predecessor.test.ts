import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { createLogger } from "@rollcall/process";
import { advertise, takeLease } from "@rollcall/store";
import { createTestDatabase, FakeAgents, type TestDatabase } from "@rollcall/testkit";
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

describe("a replica that is restarted at the same address", () => {
  it("should not be asked for its predecessor's nodes while that lease has not expired", async () => {
    const { store } = database;
    const lines: string[] = [];
    const log = createLogger({ level: "debug", destination: { write: (it) => lines.push(it) } });
    const killed = await replicas.start({ store });
    const agent = agents.create("held");
    await register(store, [agent]);
    await (await agent.join(killed.address)).beatAcknowledged();
    await killed.kill();

    const successor = await replicas.start({ store, log });
    const other = await replicas.start({ store, log });
    const [own, others] = await Promise.all([serveQueries(successor), serveQueries(other)]);
    // Make the other replica remember that the killed replica ran at its successor's address.
    const { instance } = killed;
    const { internalAddress } = successor;
    const places = { agentEndpoint: "", internalAddress, queryEndpoint: "" };
    await takeLease(store.db, { name: instance, instance, service: "health", address: "" });
    await advertise(store.db, { instance, ...places });
    await store.db
      .updateTable("health_replicas")
      .set({ internal_address: "" })
      .where("instance", "=", successor.instance)
      .execute();
    await others.client.listNodeHealth({});
    lines.splice(0);

    await successor.advertised();
    await successor.pass(3_000);
    await other.pass(3_000);
    for (const { client } of [own, others]) {
      const { nodeHealth } = await client.getNodeHealth({ node: "held" });
      expect(nodeHealth?.telemetryUnavailable).toBe(`replica ${instance} is gone`);
    }
    expect(lines.filter((it) => it.includes("REPLICA_CREDENTIALS_INVALID"))).toEqual([]);
    await Promise.all([own.close(), others.close()]);
  });
});
