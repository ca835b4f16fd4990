import { create } from "@bufbuild/protobuf";
import { describe, expect, it } from "@jest/globals";
import { GetLiveNodesResponseSchema, HealthTotalsSchema } from "@rollcall/api/rollcall/health/v1/health_internal_pb";
import { NodeHealthSchema } from "@rollcall/api/rollcall/health/v1/health_query_pb";
import { ResourceUsageSchema } from "@rollcall/api/rollcall/node/v1/usage_pb";
import { StoreUnavailableError } from "@rollcall/errors";
import { silentLogger } from "@rollcall/process";
import type { HealthServices } from "../health-services.ts";
import { BareStream, bareReplica, HELLO, opening, recordedHealth } from "../testing/bare-replica.ts";
import { askAllReplicas } from "./ask-owners.ts";
import { addTotals, ClusterTotals, type ClusterTotalsOptions } from "./cluster-totals.ts";

const hottest = (nodeId: string, celsius: number) =>
  create(HealthTotalsSchema, { hottestAverage: { nodeId, celsius }, hottestSensor: { nodeId, celsius } });

describe("addTotals()", () => {
  it.each([
    ["the hotter one", hottest("a", 50), hottest("b", 60), "b"],
    ["the first by id of two that are as hot", hottest("b", 60), hottest("a", 60), "a"],
    ["the only one", create(HealthTotalsSchema), hottest("a", 10), "a"],
  ])("should name %s, in whichever order they are added", (_, left, right, nodeId) => {
    for (const sum of [addTotals(left, right), addTotals(right, left)]) {
      expect([sum.hottestAverage?.nodeId, sum.hottestSensor?.nodeId]).toEqual([nodeId, nodeId]);
    }
  });
});

/** A replica with these nodes at these epochs; each node has sent one heartbeat. */
function holding(epochs: Readonly<Record<string, number>>) {
  const bare = bareReplica();
  for (const [nodeId, epoch] of Object.entries(epochs)) {
    const node = bare.replica.take(new BareStream(), opening(epoch, { nodeId }), HELLO);
    const usage = create(ResourceUsageSchema, { cpuPercent: 50, memoryUsedMib: 1, memoryTotalMib: 4 });
    bare.replica.beat(node, usage, true);
  }
  return bare;
}

/** The other replicas, given by the epochs that each returns; null for a replica that does not respond. */
function peersOf(...answers: readonly (Readonly<Record<string, bigint>> | null)[]) {
  return {
    all: async () =>
      answers.map((answer, index) => ({
        instance: `r${index}`,
        client: {
          getLiveNodes: async () => {
            if (answer === null) throw new Error("silent");
            const nodes = Object.entries(answer).map(([nodeId, sessionEpoch]) => {
              return create(NodeHealthSchema, { nodeId, sessionEpoch, replicaId: `r${index}` });
            });
            return create(GetLiveNodesResponseSchema, { nodes });
          },
          getLiveTotals: async () => {
            if (answer === null) throw new Error("silent");
            return { totals: create(HealthTotalsSchema, { healthy: Object.keys(answer).length }) };
          },
        },
      })),
  };
}

describe("askAllReplicas()", () => {
  const ask = async (afterId: string, limit: number) => {
    const { replica, clock } = holding({ a: 5, b: 1 });
    const peers = peersOf({ a: 4n, b: 2n, c: 1n }, null);
    const services = { replica, clock, peers } as unknown as HealthServices;
    const nodes = await askAllReplicas(services, { nodeIds: [], afterId, limit, includeSamples: false });
    return nodes.map(({ nodeId, replicaId }) => `${nodeId} ${replicaId}`);
  };

  it("should prefer the newest session of a node, and leave out replicas that do not answer", async () => {
    expect(await ask("", 10)).toEqual(["a me", "b r0", "c r0"]);
  });

  it("should return a page, whatever the others send", async () => {
    expect(await ask("a", 10)).toEqual(["b r0", "c r0"]);
    expect(await ask("", 2)).toEqual(["a me", "b r0"]);
  });
});

describe("ClusterTotals", () => {
  const away = {
    get db(): never {
      throw new StoreUnavailableError("the database is away");
    },
  };

  function totals(peers: ReturnType<typeof peersOf>) {
    const bare = holding({ a: 1, b: 1 });
    const node = bare.replica.take(
      new BareStream(),
      opening(1, { nodeId: "ill", detectedHealth: recordedHealth("UNHEALTHY") }),
      HELLO,
    );
    bare.replica.beat(node, create(ResourceUsageSchema, { cpuPercent: 100 }), false);
    const options = { store: away, replica: bare.replica, peers, clock: bare.clock, log: silentLogger };
    return { ...bare, totals: new ClusterTotals(options as unknown as ClusterTotalsOptions) };
  }

  it("should sum all replicas that answer, and name those that do not", async () => {
    const rig = totals(peersOf({ c: 1n, d: 1n }, null));
    const { totals: sums, missingReplicaIds } = await rig.totals.cluster();
    expect(missingReplicaIds).toEqual(["r1"]);
    expect(sums).toMatchObject({ healthy: 4, unhealthy: 1, reporting: 2, memoryUsedMib: 2n, memoryTotalMib: 8n });
  });

  it("should leave out nodes whose used memory is unknown", async () => {
    const rig = totals(peersOf());
    const node = rig.replica.take(new BareStream(), opening(1, { nodeId: "blind" }), HELLO);
    rig.replica.beat(node, create(ResourceUsageSchema, { cpuPercent: 1, memoryTotalMib: 1_000 }), false);
    expect((await rig.totals.cluster()).totals).toMatchObject({ reporting: 3, memoryUsedMib: 2n, memoryTotalMib: 8n });
  });

  it("should return the same result for a second, and then a new one", async () => {
    const rig = totals(peersOf());
    const first = rig.totals.cluster();
    expect((await first).totals.healthy).toBe(2);
    rig.clock.advance(999);
    expect(rig.totals.cluster()).toBe(first);
    rig.replica.take(new BareStream(), opening(1, { nodeId: "c" }), HELLO);
    rig.clock.advance(1);
    expect((await rig.totals.cluster()).totals.healthy).toBe(3);
  });
});
