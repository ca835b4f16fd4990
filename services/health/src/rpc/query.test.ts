import { durationMs, timestampMs } from "@bufbuild/protobuf/wkt";
import { type Client, createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { HealthQueryService } from "@rollcall/api/rollcall/health/v1/health_query_pb";
import { HealthState } from "@rollcall/api/rollcall/node/v1/node_pb";
import { healthEvent } from "@rollcall/domain";
import { reasonOf } from "@rollcall/errors";
import { silentLogger } from "@rollcall/process";
import { createRpcServer, policyProblems, type RunningServer } from "@rollcall/rpc";
import {
  appendEvents,
  createTestDatabase,
  eventually,
  FakeAgents,
  saveMark,
  type TestDatabase,
} from "@rollcall/testkit";
import { POLICIES, SERVICES } from "../routes.ts";
import { recordOf, register } from "../testing/record.ts";
import { type TestReplica, TestReplicas } from "../testing/test-replica.ts";

const agents = new FakeAgents();
const replicas = new TestReplicas();
let database: TestDatabase;
let replica: TestReplica;
let server: RunningServer;
let client: Client<typeof HealthQueryService>;

beforeAll(async () => {
  database = await createTestDatabase();
  replica = await replicas.start({ store: database.store });
  server = await createRpcServer({
    host: "127.0.0.1",
    port: 0,
    routes: replica.app.routes,
    services: replica.app.services,
    policies: replica.app.policies,
    authenticate: async () => ({ kind: "token", id: "t", role: "viewer" }),
    log: silentLogger,
    metrics: replica.metrics,
  });
  const transport = createGrpcTransport({
    baseUrl: `http://127.0.0.1:${server.port}`,
    interceptors: [
      (next) => (request) => {
        request.header.set("authorization", "Bearer some-token-of-a-test");
        return next(request);
      },
    ],
  });
  client = createClient(HealthQueryService, transport);
  const names = ["web-1", "web-2", "db-1", "absent"];
  const crowd = names.map((name) => agents.create(name));
  await register(database.store, crowd);
  for (const agent of crowd.slice(0, 3)) {
    const stream = await agent.join(replica.address);
    await stream.beatAcknowledged({
      cpuPercent: 50,
      memoryTotalMib: 100,
      gpus: [{ index: 0, memoryTotalMib: 5 }],
    });
    await stream.beatAcknowledged({ cpuPercent: 75, gpus: [{ index: 0 }] });
  }
});

afterAll(async () => {
  agents.close();
  await server.close();
  await replicas.close();
  await database.drop();
});

const failure = (call: Promise<unknown>) =>
  call.then(
    () => "no failure",
    (error: unknown) => reasonOf(error),
  );

describe("policies", () => {
  it("should have a row for each method", () => {
    expect(policyProblems(SERVICES, POLICIES)).toEqual([]);
  });
});

describe("getNodeHealth()", () => {
  it("should return everything that the replica knows", async () => {
    await replica.pass(1_000);
    const { nodeHealth } = await client.getNodeHealth({ node: "web-1" });
    expect(nodeHealth).toMatchObject({
      nodeId: "web-1",
      replicaId: replica.instance,
      sessionEpoch: 1n,
    });
    expect(nodeHealth?.health?.state).toBe(HealthState.HEALTHY);
    expect(nodeHealth?.silentFor && durationMs(nodeHealth.silentFor)).toBe(1_000);
    expect(nodeHealth?.lastSeenTime && timestampMs(nodeHealth.lastSeenTime)).toBe(replica.clock.wallMs() - 1_000);
    expect(nodeHealth?.heartbeatInterval && durationMs(nodeHealth.heartbeatInterval)).toBe(1_000);
    expect(nodeHealth?.unhealthyAfter && durationMs(nodeHealth.unhealthyAfter)).toBe(3_000);
    expect(nodeHealth?.unknownAfter && durationMs(nodeHealth.unknownAfter)).toBe(9_000);
    expect(nodeHealth?.samples.map(({ usage }) => usage?.cpuPercent)).toEqual([50, 75]);
    expect(nodeHealth?.latest?.usage).toMatchObject({ cpuPercent: 75, memoryTotalMib: 100 });
    expect(nodeHealth?.latest?.usage?.gpus[0]?.memoryTotalMib).toBe(5);
    expect(nodeHealth?.latest?.age && durationMs(nodeHealth.latest.age)).toBe(1_000);
  });

  it("should accept an unambiguous prefix from people, and only exact ids from programs", async () => {
    expect((await client.getNodeHealth({ node: "db", allowPrefix: true })).nodeHealth?.nodeId).toBe("db-1");
    expect(await failure(client.getNodeHealth({ node: "web", allowPrefix: true }))).toBe("AMBIGUOUS_NODE");
    expect(await failure(client.getNodeHealth({ node: "db" }))).toBe("NODE_NOT_FOUND");
    expect(await failure(client.getNodeHealth({ node: "nobody" }))).toBe("NODE_NOT_FOUND");
    expect(await failure(client.getNodeHealth({ node: "%" }))).toBe("NODE_NOT_FOUND");
    expect(await failure(client.getNodeHealth({ node: "" }))).toBe("INVALID_REQUEST");
  });

  it("should answer from the store for a node that no replica holds", async () => {
    const { nodeHealth } = await client.getNodeHealth({ node: "absent" });
    expect(nodeHealth?.health).toMatchObject({
      state: HealthState.UNKNOWN,
      reason: "NEVER_CONNECTED",
    });
    expect(nodeHealth?.lastSeenTime).toBeUndefined();
  });
});

describe("listNodeHealth()", () => {
  it("should list the held nodes by id, page by page", async () => {
    const first = await client.listNodeHealth({ pageSize: 2 });
    expect(first.nodes.map(({ nodeId }) => nodeId)).toEqual(["db-1", "web-1"]);
    expect(first.nodes[0]?.latest?.usage?.cpuPercent).toBe(75);
    expect(first.nodes[0]?.samples).toEqual([]);
    const second = await client.listNodeHealth({ pageSize: 2, pageToken: first.nextPageToken });
    expect(second.nodes.map(({ nodeId }) => nodeId)).toEqual(["web-2"]);
    expect(second.nextPageToken).toBe("");
  });

  it("should list selected nodes, with their samples on request", async () => {
    const { nodes } = await client.listNodeHealth({
      nodeIds: ["web-2", "absent", "web-2", "nobody"],
      includeSamples: true,
    });
    expect(nodes.map(({ nodeId }) => nodeId)).toEqual(["web-2"]);
    expect(nodes[0]?.samples).toHaveLength(2);
  });

  it.each(["garbage", Buffer.from("h1:").toString("base64url"), Buffer.from("x1:web-1").toString("base64url")])(
    "should refuse the page token %j",
    async (pageToken) => {
      expect(await failure(client.listNodeHealth({ pageToken }))).toBe("INVALID_PAGE_TOKEN");
    },
  );

  it("should show an operator's mark until it is cleared", async () => {
    const { store } = database;
    const mark = async (message: string | null) =>
      store.transaction(async (tx) => {
        await saveMark(tx, "web-1", message === null ? null : { sinceMs: 0, message, actor: "token:t" });
        const { detectedHealth: before } = await recordOf(store, "web-1");
        const after = { ...before, actor: "token:t" };
        await appendEvents(tx, [healthEvent({ subject: "web-1", before, after })]);
      });
    const shown = async () => (await client.listNodeHealth({ nodeIds: ["web-1"] })).nodes[0]?.health;
    await mark("smells");
    await eventually(async () =>
      expect(await shown()).toMatchObject({
        state: HealthState.UNHEALTHY,
        reason: "OPERATOR_MARKED",
        message: "smells",
      }),
    );
    expect((await client.getNodeHealth({ node: "web-1" })).nodeHealth?.health?.reason).toBe("OPERATOR_MARKED");
    await mark(null);
    expect((await shown())?.state).toBe(HealthState.HEALTHY);
  });
});
