import { once } from "node:events";
import { connect } from "node:http2";
import { durationMs } from "@bufbuild/protobuf/wkt";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { HealthInternalService } from "@rollcall/api/rollcall/health/v1/health_internal_pb";
import { HealthState } from "@rollcall/api/rollcall/node/v1/node_pb";
import { reasonOf } from "@rollcall/errors";
import { signReplicaCall } from "@rollcall/identity";
import { connectPeer } from "@rollcall/rpc";
import { createTestDatabase, FakeAgents, ManualClock, type sendBearer, type TestDatabase } from "@rollcall/testkit";
import { type QueryClient, serveQueries } from "../testing/query-client.ts";
import { register } from "../testing/record.ts";
import { type TestReplica, TestReplicas } from "../testing/test-replica.ts";

const agents = new FakeAgents();
const replicas = new TestReplicas();
let database: TestDatabase;
let left: TestReplica;
let right: TestReplica;
let reader: QueryClient;

beforeAll(async () => {
  database = await createTestDatabase();
  const { store } = database;
  [left, right] = await Promise.all([replicas.start({ store }), replicas.start({ store })]);
  reader = await serveQueries(left);
  const crowd = ["a-left", "b-right", "c-left", "d-right", "e-absent"].map((id) => agents.create(id));
  await register(store, crowd);
  for (const agent of crowd.slice(0, 4)) {
    const at = agent.nodeId.endsWith("left") ? left : right;
    const stream = await agent.join(at.address, { agentTimeMs: BigInt(at.clock.wallMs() + 2_500) });
    await stream.beatAcknowledged({
      cpuPercent: agent.nodeId === "d-right" ? 90 : 10,
      memoryUsedMib: 10,
      memoryTotalMib: 100,
      temperatureAverageCelsius: agent.nodeId === "b-right" ? 61.5 : 40,
      temperatureMaxCelsius: agent.nodeId === "c-left" ? 80 : 50,
      gpus: [{ index: 0, utilizationPercent: agent.nodeId === "d-right" ? 50 : 0 }],
    });
  }
});

afterAll(async () => {
  agents.close();
  await reader.close();
  await replicas.close();
  await database.drop();
});

describe("HealthQueryService of one of two replicas", () => {
  it("should return a node that the other one holds", async () => {
    const { nodeHealth } = await reader.client.getNodeHealth({ node: "d", allowPrefix: true });
    expect(nodeHealth).toMatchObject({
      nodeId: "d-right",
      replicaId: right.instance,
      telemetryUnavailable: "",
    });
    expect(nodeHealth?.health?.state).toBe(HealthState.HEALTHY);
    expect(nodeHealth?.samples.map(({ usage }) => usage?.cpuPercent)).toEqual([90]);
    expect(nodeHealth?.clockSkew && durationMs(nodeHealth.clockSkew)).toBe(2_500);
  });

  it("should list the nodes of both in one order, page by page", async () => {
    const pages: string[][] = [];
    let pageToken = "";
    do {
      const page = await reader.client.listNodeHealth({ pageSize: 3, pageToken });
      pages.push(page.nodes.map(({ nodeId }) => nodeId));
      for (const node of page.nodes) expect(node.latest).toBeDefined();
      pageToken = page.nextPageToken;
    } while (pageToken !== "");
    expect(pages).toEqual([["a-left", "b-right", "c-left"], ["d-right"]]);
  });

  it("should list selected nodes with their samples", async () => {
    const { nodes } = await reader.client.listNodeHealth({
      nodeIds: ["d-right", "a-left", "e-absent"],
      includeSamples: true,
    });
    expect(nodes.map(({ nodeId, samples }) => [nodeId, samples.length])).toEqual([
      ["a-left", 1],
      ["d-right", 1],
    ]);
  });

  it("should sum over the cluster", async () => {
    const health = await reader.client.getClusterHealth({});
    expect(health).toMatchObject({
      healthy: 4,
      unhealthy: 0,
      reporting: 4,
      cpuPercent: 30,
      memoryUsedMib: 40n,
      memoryTotalMib: 400n,
      gpus: 4,
      gpusBusy: 1,
      missingReplicaIds: [],
    });
    expect(health.hottestAverage).toMatchObject({ nodeId: "b-right", celsius: 61.5 });
    expect(health.hottestSensor).toMatchObject({ nodeId: "c-left", celsius: 80 });
  });
});

describe("a replica whose wall clock differs", () => {
  it("should sign calls that others accept, and accept theirs", async () => {
    const { clock } = right;
    if (!(clock instanceof ManualClock)) throw new Error("the test's clock is a manual one");
    clock.jumpWall(86_400_000);
    const far = await serveQueries(right);
    try {
      for (const [asked, node] of [
        [reader, "b-right"],
        [far, "a-left"],
      ] as const) {
        const { nodeHealth } = await asked.client.getNodeHealth({ node });
        expect(nodeHealth).toMatchObject({ nodeId: node, telemetryUnavailable: "" });
      }
    } finally {
      clock.jumpWall(-86_400_000);
      await far.close();
    }
    const { nodeHealth } = await reader.client.getNodeHealth({ node: "b-right" });
    expect(nodeHealth?.telemetryUnavailable).toBe("");
  });
});

describe("the internal address", () => {
  const ask = async (...interceptors: Parameters<typeof connectPeer>[0]["interceptors"]) => {
    const { internalAddress: address } = right;
    const peer = connectPeer({ address, interceptors, timeoutMs: 60_000 });
    try {
      await peer.client(HealthInternalService).getLiveNodes({ nodeIds: ["b-right"] });
      return "answered";
    } catch (error) {
      return reasonOf(error);
    } finally {
      peer.close();
    }
  };
  const credentials = (changes: { to?: string; method?: string; wallMs?: number; secret?: Buffer }) => {
    const { store } = database;
    const call = {
      from: "unknown",
      to: changes.to ?? right.instance,
      method: `/rollcall.health.v1.HealthInternalService/${changes.method ?? "GetLiveNodes"}`,
    };
    const wallMs = changes.wallMs ?? right.clock.wallMs();
    return signReplicaCall(changes.secret ?? store.clusterSecret(), call, wallMs);
  };
  const sending =
    (authorization: string) =>
    (next: Parameters<ReturnType<typeof sendBearer>>[0]) =>
    (request: Parameters<typeof next>[0]) => {
      request.header.set("authorization", authorization);
      return next(request);
    };

  it("should answer a replica of its cluster", async () => {
    expect(await ask(sending(credentials({})))).toBe("answered");
  });

  it.each([
    ["no credentials", () => null],
    ["an access token", () => "Bearer some-token-of-a-test"],
    ["those for another replica", () => credentials({ to: left.instance })],
    ["those for another method", () => credentials({ method: "ProbeNodes" })],
    ["those of another cluster", () => credentials({ secret: Buffer.alloc(32) })],
    ["old ones", () => credentials({ wallMs: right.clock.wallMs() - 31_000 })],
    ["ones from the future", () => credentials({ wallMs: right.clock.wallMs() + 31_000 })],
  ])("should refuse %s", async (_, make) => {
    const authorization = make();
    const interceptors = authorization === null ? [] : [sending(authorization)];
    expect(await ask(...interceptors)).toBe("REPLICA_CREDENTIALS_INVALID");
  });

  // An invalid message: a field of length 127 without its data.
  const garbage = Buffer.from([0x0a, 0x7f, 0x00]);
  const inFrame = Buffer.concat([Buffer.from([0, 0, 0, 0, garbage.length]), garbage]);
  const service = "rollcall.health.v1.HealthInternalService";

  it.each([
    ["ProbeNodes", "application/proto", garbage],
    ["ProbeNodes", "application/json", Buffer.from("{]")],
    ["ProbeNodes", "application/grpc-web", inFrame],
    ["WatchLiveNodes", "application/connect+proto", inFrame],
    ["WatchLiveNodes", "application/grpc-web+proto", inFrame],
  ])("should not read what an anonymous client sends: %s as %s", async (method, type, body) => {
    const answer = await fetch(`http://${right.internalAddress}/${service}/${method}`, {
      method: "POST",
      headers: { "content-type": type },
      body: new Uint8Array(body),
    });
    const text = Buffer.from(await answer.arrayBuffer()).toString();
    const said = type.includes("grpc") ? detailsOf(answer) : text;
    expect(said).toContain("REPLICA_CREDENTIALS_INVALID");
  });

  it("should not read what an anonymous client sends by GET or gRPC", async () => {
    const query = "connect=v1&encoding=json&message=%7B%5D";
    const byGet = await fetch(`http://${right.internalAddress}/${service}/ProbeNodes?${query}`);
    expect(await byGet.text()).toContain("REPLICA_CREDENTIALS_INVALID");
    const session = connect(`http://${right.internalAddress}`);
    try {
      const stream = session.request({
        ":method": "POST",
        ":path": `/${service}/ProbeNodes`,
        "content-type": "application/grpc",
        te: "trailers",
      });
      // Send only a part of the frame, because the call must fail without waiting for the rest.
      stream.write(inFrame.subarray(0, 2));
      const [headers] = await once(stream, "response");
      const details = Buffer.from(String(headers["grpc-status-details-bin"]), "base64");
      expect(details.toString()).toContain("REPLICA_CREDENTIALS_INVALID");
    } finally {
      session.destroy();
    }
  });
});

function detailsOf({ headers }: Response): string {
  return Buffer.from(headers.get("grpc-status-details-bin") ?? "", "base64").toString();
}
