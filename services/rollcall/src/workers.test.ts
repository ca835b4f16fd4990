import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { keyFingerprint } from "@rollcall/identity";
import { listLeases, type Store } from "@rollcall/store";
import { addNode, createTestDatabase, eventually, FakeAgent, saveKey, type TestDatabase } from "@rollcall/testkit";
import { until } from "@rollcall/testkit/time";
import { haveEnded } from "./testing/processes.ts";
import type { RollcallProcess } from "./testing/rollcall-process.ts";
import { createServeFixture, type ServeFixture } from "./testing/serve-fixture.ts";

const AGENTS = 12;

// One story: each test continues with the state of the previous one.
describe("rollcall serve health --workers 2", () => {
  let database: TestDatabase;
  let store: Store;
  let fixture: ServeFixture;
  let health: RollcallProcess;
  const agents: FakeAgent[] = [];

  beforeAll(async () => {
    database = await createTestDatabase();
    store = await database.openStore();
    fixture = await createServeFixture(database.url);
    [health] = await Promise.all([
      fixture.serve("health", "--workers", "2"),
      fixture.serve("registry"),
      fixture.serve("admin"),
    ]);
    // Connect one agent after the other, because a busy machine cannot connect all of them at once.
    for (let index = 0; index < AGENTS; index += 1) {
      const agent = new FakeAgent({ nodeId: `w${index}` });
      const { nodeId, publicKey } = agent;
      await addNode(store, nodeId, { hasKey: false });
      await store.transaction((tx) => saveKey(tx, { nodeId, publicKey, fingerprint: keyFingerprint(publicKey) }));
      agent.live({ endpoints: () => [fixture.agentsAddress], beatEveryMs: 300 });
      agents.push(agent);
    }
  });

  afterAll(async () => {
    for (const agent of agents) agent.close();
    await fixture.dispose();
    await store.close();
    await database.drop();
  });

  const leases = async () =>
    (await listLeases(store.db)).filter(({ name, service }) => service === "health" && name.startsWith("health-w"));
  const sessions = async () => {
    const rows = await store.db
      .selectFrom("node_sessions")
      .select(["replica_id", "connection", "health"])
      .where("node_type", "=", "COMPUTE")
      .execute();
    return rows;
  };
  const allHealthy = () =>
    until("every agent to be well", async () => {
      const rows = await sessions();
      const well = rows.filter((it) => it.connection === "CONNECTED" && it.health === "HEALTHY");
      return well.length === AGENTS ? rows : null;
    });
  const probe = async (path: string) => (await fetch(`http://${fixture.healthProbes}${path}`)).text();

  it("should share the agents among replicas, each with its own lease", async () => {
    const rows = await allHealthy();
    const holders = (await leases()).map(({ instance }) => instance);
    expect(holders).toHaveLength(2);
    for (const holder of holders) {
      const share = rows.filter(({ replica_id }) => replica_id === holder).length;
      expect(share).toBeGreaterThanOrEqual(AGENTS / 4);
    }
  });

  it("should answer probes for all of them", async () => {
    const ready: unknown = JSON.parse(await probe("/readyz"));
    expect(ready).toEqual({
      ready: true,
      checks: { workers: { ok: true, message: "2 of 2 workers" } },
    });
    const metrics = await probe("/metrics");
    const held = [...metrics.matchAll(/^rollcall_health_sessions\{worker="(\d)"\} (\d+)$/gm)];
    expect(held.map(([, worker]) => worker)).toEqual(["1", "2"]);
    expect(held.reduce((sum, [, , count]) => sum + Number(count), 0)).toBe(AGENTS);
  });

  it("should show each as a node", async () => {
    const { nodes } = await fixture.client.registry.listNodes({ types: [1] });
    const ids = nodes.map(({ id }) => id).filter((id) => id.startsWith("health-"));
    expect(ids.map((id) => id.slice(0, 9))).toEqual(["health-w1", "health-w2"]);
  });

  it("should hand the nodes of a killed worker to the other one, and restart it", async () => {
    const line = await health.logged("worker started", { worker: 1 });
    const [first] = (await leases()).map(({ instance }) => instance).filter((it) => it.startsWith("health-w1"));
    process.kill(Number(line.pid), "SIGKILL");
    await health.logged("worker exited; restarting it", { worker: 1 });
    await until("the lease to be ended", async () => {
      const held = await leases();
      return held.every(({ instance }) => instance !== first);
    });
    await eventually(async () => {
      const rows = await sessions();
      expect(rows.filter(({ replica_id }) => replica_id === first)).toEqual([]);
    });
    await health.logged("worker serving", { worker: 1 }, 1);
    await allHealthy();
    for (const { nodeId, longestGapMs } of agents) {
      const history = await fixture.client.healthHistory(nodeId);
      // Skip an agent whose own log shows a gap, because its node was rightly declared unhealthy.
      if (longestGapMs < 2_500) expect(history).toEqual(["HEALTHY"]);
    }
  });

  it("should shut down cleanly when asked", async () => {
    expect(await health.killed("SIGTERM")).toBe(0);
    expect(await leases()).toEqual([]);
    await health.logged("stopped");
  });

  it("should leave no worker behind when the primary is killed", async () => {
    health = await fixture.serve("health", "--workers", "2");
    const workers = await Promise.all(
      [1, 2].map(async (worker) => Number((await health.logged("worker started", { worker })).pid)),
    );
    await health.killed();
    await haveEnded(...workers);
    // The leases show that the workers shut down cleanly instead of crashing.
    await until("their leases to be ended", async () => (await leases()).length === 0);
  });
});
