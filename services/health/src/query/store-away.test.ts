import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { reasonOf } from "@rollcall/errors";
import { signProof } from "@rollcall/identity";
import { silentLogger } from "@rollcall/process";
import { openStore, type Store } from "@rollcall/store";
import { FakeAgents, startTestPostgres, type TestPostgres } from "@rollcall/testkit";
import { type QueryClient, serveQueries } from "../testing/query-client.ts";
import { register } from "../testing/record.ts";
import { type TestReplica, TestReplicas } from "../testing/test-replica.ts";

const agents = new FakeAgents();
const replicas = new TestReplicas();
let postgres: TestPostgres;
let store: Store;
let left: TestReplica;
let right: TestReplica;
let reader: QueryClient;

beforeAll(async () => {
  postgres = await startTestPostgres();
  store = await openStore({
    url: postgres.url,
    poolSize: 8,
    log: silentLogger,
    applicationName: "store-away",
  });
  [left, right] = await Promise.all([replicas.start({ store }), replicas.start({ store })]);
  reader = await serveQueries(left);
});

afterAll(async () => {
  agents.close();
  await reader.close();
  await replicas.close();
  await store.close();
  await postgres.drop();
});

const failure = (call: Promise<unknown>) =>
  call.then(
    () => "no failure",
    (error: unknown) => reasonOf(error),
  );

describe("while the store is unavailable", () => {
  it("should return what the replicas know, and accept unary heartbeats", async () => {
    const crowd = ["a-left", "b-right", "c-right", "unary"].map((id) => agents.create(id));
    await register(store, crowd);
    for (const agent of crowd.slice(0, 3)) {
      const at = agent.nodeId.endsWith("left") ? left : right;
      await (await agent.join(at.address)).beatAcknowledged({ cpuPercent: 20 });
    }
    const caller = crowd[3];
    if (caller === undefined) throw new Error("no caller");
    const { challenge } = await reader.client.reportHeartbeat({ nodeId: "unary" });
    const signature = signProof(caller.privateKey, challenge?.proofText ?? "");
    const { sessionToken } = await reader.client.reportHeartbeat({
      nodeId: "unary",
      step: {
        case: "open",
        value: { nonce: challenge?.nonce ?? new Uint8Array(), hello: { signature } },
      },
    });
    // This query makes the replica list the other one before the store stops.
    await reader.client.getNodeHealth({ node: "b-right" });
    await postgres.stop();

    const first = await reader.client.listNodeHealth({ pageSize: 3 });
    expect(first.nodes.map(({ nodeId }) => nodeId)).toEqual(["a-left", "b-right", "c-right"]);
    const second = await reader.client.listNodeHealth({
      pageSize: 3,
      pageToken: first.nextPageToken,
    });
    expect(second.nodes.map(({ nodeId }) => nodeId)).toEqual(["unary"]);
    expect(second.nextPageToken).toBe("");
    const { nodeHealth } = await reader.client.getNodeHealth({ node: "c-right" });
    expect(nodeHealth?.latest?.usage?.cpuPercent).toBe(20);
    // Only the store can resolve a prefix of an id.
    expect(await failure(reader.client.getNodeHealth({ node: "c-", allowPrefix: true }))).toBe("STORE_UNAVAILABLE");
    expect((await reader.client.getClusterHealth({})).reporting).toBe(3);
    const step = { case: "beat", value: { sessionToken, sequence: 1 } } as const;
    const answer = await reader.client.reportHeartbeat({ nodeId: "unary", step });
    expect(answer.sequence).toBe(1);
    await postgres.start();
  });
});
