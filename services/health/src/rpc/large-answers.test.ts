import { create } from "@bufbuild/protobuf";
import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { HealthQueryService, type NodeHealth } from "@rollcall/api/rollcall/health/v1/health_query_pb";
import { ResourceUsageSchema } from "@rollcall/api/rollcall/node/v1/usage_pb";
import { systemClock } from "@rollcall/process";
import { createTestDatabase, FakeAgents, sendBearer, type TestDatabase } from "@rollcall/testkit";
import { type QueryClient, serveQueries } from "../testing/query-client.ts";
import { register } from "../testing/record.ts";
import { type TestReplica, TestReplicas } from "../testing/test-replica.ts";

/** The default message limit of gRPC clients. */
const MOST_BYTES = 4 * 1_048_576;
/** Long thresholds, because no agent sends heartbeats in this test. */
const PATIENT = {
  "Orchestrator.NodeManager.DisconnectTimeout": 3_600_000,
  "Orchestrator.NodeManager.UnknownTimeout": 7_200_000,
} as const;
const NODES = 40;
const ids = Array.from({ length: NODES }, (_, at) => `n${100 + at}`);

const agents = new FakeAgents();
const replicas = new TestReplicas();
let database: TestDatabase;
let reader: QueryClient;
let client: QueryClient["client"];

/**
 * Give a node the largest possible samples: 60 samples of 64 GPUs and 32 NUMA nodes, with every number at its maximum
 * encoded size.
 */
function fillSamples(replica: TestReplica, nodeId: string): void {
  const gpus = Array.from({ length: 64 }, (_, index) => ({
    ...{ index, utilizationPercent: 33.33, temperatureCelsius: 77.77 },
    ...{ memoryUsedMib: 4_000_000_000, memoryTotalMib: 4_000_000_000 },
  }));
  const numaNodes = Array.from({ length: 32 }, (_, at) => ({
    ...{ id: 4_000_000_000 + at, cpuPercent: 33.33 },
    ...{ memoryUsedMib: 4_000_000_000, memoryTotalMib: 4_000_000_000 },
  }));
  const samples = replica.app.replica.nodes.find(nodeId)?.samples;
  if (!samples) throw new Error(`${nodeId} has no samples`);
  for (let at = 0; at < 60; at++) {
    samples.add(create(ResourceUsageSchema, { cpuPercent: at, gpus, numaNodes }), replica.clock.nowMs());
  }
}

beforeAll(async () => {
  database = await createTestDatabase();
  const options = { store: database.store, clock: systemClock, config: PATIENT };
  const replica = await replicas.start(options);
  reader = await serveQueries(replica);
  client = createClient(
    HealthQueryService,
    createGrpcTransport({
      baseUrl: `http://${reader.address}`,
      readMaxBytes: MOST_BYTES,
      interceptors: [sendBearer("some-token-of-a-test")],
    }),
  );
  const crowd = ids.map((id) => agents.create(id));
  await register(database.store, crowd);
  for (const agent of crowd) {
    await (await agent.join(replica.address)).beatAcknowledged({ cpuPercent: 1 });
    fillSamples(replica, agent.nodeId);
  }
});

afterAll(async () => {
  agents.close();
  await reader.close();
  await replicas.close();
  await database.drop();
});

describe("the largest possible samples", () => {
  it.each([
    ["all", [], ids],
    ["chosen ones", ids.slice(0, 12).toReversed(), ids.slice(0, 12)],
  ])("should be listed in pages that clients accept, of %s", async (_, nodeIds, listed) => {
    const nodes: NodeHealth[] = [];
    let pages = 0;
    let pageToken = "";
    do {
      const page = await client.listNodeHealth({
        ...{ nodeIds, pageSize: 1_000, pageToken, includeSamples: true },
      });
      nodes.push(...page.nodes);
      pages += 1;
      pageToken = page.nextPageToken;
    } while (pageToken !== "");
    expect(nodes.map(({ nodeId }) => nodeId)).toEqual(listed);
    for (const node of nodes) {
      expect(node.telemetryUnavailable).toBe("");
      expect(node.samples).toHaveLength(60);
    }
    expect(pages).toBeGreaterThan(1);
    expect(pages).toBeLessThan(12);
  });

  it("should be listed in one page with only the latest samples", async () => {
    const page = await client.listNodeHealth({ pageSize: 1_000 });
    expect(page.nodes).toHaveLength(NODES);
    expect(page.nextPageToken).toBe("");
  });

  it("should be watched in messages that clients accept", async () => {
    const seen = new Map<string, number>();
    const watch = client.watchNodeHealth({ nodeIds: ids, includeSamples: true }, { timeoutMs: 0 });
    for await (const { nodes } of watch) {
      for (const { nodeId, samples } of nodes) {
        seen.set(nodeId, Math.max(samples.length, seen.get(nodeId) ?? 0));
      }
      if (seen.size === NODES) break;
    }
    expect([...seen.values()]).toEqual(Array(NODES).fill(60));
  });
});
