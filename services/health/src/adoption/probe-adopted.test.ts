import { create } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { ProbeNodesResponseSchema } from "@rollcall/api/rollcall/health/v1/health_internal_pb";
import type { HealthState } from "@rollcall/domain";
import { silentLogger } from "@rollcall/process";
import { releaseLease } from "@rollcall/store";
import { createTestDatabase, eventually, FakeAgents, type TestDatabase, until } from "@rollcall/testkit";
import { liveNode } from "../testing/live-node.ts";
import { serveQueries } from "../testing/query-client.ts";
import { register } from "../testing/record.ts";
import { TestReplicas } from "../testing/test-replica.ts";
import { AdoptedProber } from "./probe-adopted.ts";

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

interface Facts {
  readonly publicKey?: Uint8Array;
  readonly health?: HealthState;
}

/** Create a prober of nodes adopted from replica "old", which last heard from each node 4 s ago. */
function probe(nodes: Readonly<Record<string, Facts>>) {
  const asked: string[][] = [];
  const heard: [string, number][] = [];
  const held = new Map(
    Object.entries(nodes).map(([id, { publicKey = null, health = "HEALTHY" }]) => {
      const node = liveNode(id, { publicKey });
      node.timing = { ...node.timing, health };
      return [id, node];
    }),
  );
  const probeNodes = async ({ nodeIds = [] }: { readonly nodeIds?: readonly string[] }) => {
    asked.push([...nodeIds]);
    const contacts = nodeIds.map((nodeId) => ({ nodeId, silentFor: durationFromMs(4_000) }));
    return create(ProbeNodesResponseSchema, { contacts });
  };
  const prober = new AdoptedProber({
    log: silentLogger,
    replica: {
      nodes: { find: (id: string) => held.get(id) },
      detector: {
        nowMs: () => 10_000,
        heard: ({ id }: { readonly id: string }, atMs: number) => heard.push([id, atMs]),
      },
    },
    peers: { remembered: () => ({ client: { probeNodes } }) },
  });
  prober.add(Object.keys(nodes).map((nodeId) => ({ nodeId, previousReplicaId: "old" })));
  return { prober, asked, heard };
}

describe("AdoptedProber.turn()", () => {
  it("should count a contact from its own time, not from now", async () => {
    const { prober, heard } = probe({ a: {} });
    await prober.turn();
    expect(heard).toEqual([["a", 6_000]]);
  });

  it("should ask only about nodes that have not connected and are not declared", async () => {
    const { prober, asked } = probe({
      came: { publicKey: new Uint8Array(1) },
      evaluated: { health: "UNHEALTHY" },
      waits: {},
    });
    await prober.turn();
    await prober.turn();
    expect(asked).toEqual([["waits"], ["waits"]]);
  });

  it("should ask about 1,000 nodes per call, and about all of them", async () => {
    const ids = Array.from({ length: 2_001 }, (_, index) => `n${index}`);
    const { prober, asked, heard } = probe(Object.fromEntries(ids.map((id) => [id, {}])));
    await prober.turn();
    expect(asked.map(({ length }) => length)).toEqual([1_000, 1_000, 1]);
    expect(heard.map(([id]) => id)).toEqual(ids);
  });
});

describe("AdoptedProber", () => {
  it("should count heartbeats at a replica that is cut off from the store, until that is gone too", async () => {
    const { store } = database;
    const old = await replicas.start({ store });
    const agent = agents.create("beats-there");
    await register(store, [agent]);
    const stream = await agent.join(old.address);
    await stream.beatAcknowledged();
    const heir = await replicas.start({ store });
    // This query makes the new owner look up the old replica's address.
    const reader = await serveQueries(heir);
    expect((await reader.client.getNodeHealth({ node: agent.nodeId })).nodeHealth?.latest).toBeUndefined();
    await reader.close();
    await old.cutOff();
    await releaseLease(store.db, old.instance, old.instance);
    heir.app.onLeaseHeld();
    const node = await until("the adoption", () => heir.app.replica.nodes.find("beats-there"));
    const stillHealthy = async () => {
      const beforeMs = node.timing.lastReceivedMs;
      await heir.pass(2_000);
      await stream.beatAcknowledged();
      await eventually(() => expect(node.timing.lastReceivedMs).toBeGreaterThan(beforeMs));
      expect(node.health.state).toBe("HEALTHY");
    };
    for (let turn = 0; turn < 4; turn++) await stillHealthy();
    await old.kill();
    await heir.pass(3_100);
    expect(node.health).toMatchObject({ state: "UNHEALTHY", reason: "HEARTBEATS_MISSED" });
  });
});
