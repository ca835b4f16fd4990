import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { systemClock } from "@rollcall/process";
import { createTestDatabase, eventually, type FakeAgent, FakeAgents, type TestDatabase } from "@rollcall/testkit";
import { eventsOf, register } from "../testing/record.ts";
import { type TestReplica, TestReplicas } from "../testing/test-replica.ts";

const AGENTS = 30;

const fakes = new FakeAgents();
const replicas = new TestReplicas();
let database: TestDatabase;
let agents: readonly FakeAgent[] = [];
let live: TestReplica[] = [];

beforeEach(async () => {
  database = await createTestDatabase();
});

afterEach(async () => {
  fakes.close();
  await replicas.close();
  await database.drop();
});

/**
 * The thresholds are long, so that no node is declared unhealthy on a busy machine. The test covers only the
 * effects of a move.
 */
async function startReplica(): Promise<TestReplica> {
  const config = {
    "Orchestrator.NodeManager.DisconnectTimeout": 60_000,
    "Orchestrator.NodeManager.UnknownTimeout": 90_000,
  };
  return replicas.start({ store: await database.openStore(), clock: systemClock, config });
}

const held = (replica: TestReplica) => replica.app.replica.nodes.sessions;

async function joinAll(): Promise<void> {
  agents = Array.from({ length: AGENTS }, (_, index) => fakes.create(`share${index}`));
  await register(database.store, agents);
  const endpoints = () => live.map(({ address }) => address);
  for (const agent of agents) agent.live({ endpoints, beatEveryMs: 500 });
  await eventually(() => expect(live.reduce((sum, it) => sum + held(it), 0)).toBe(AGENTS));
  await eventually(async () => {
    for (const { nodeId } of agents) expect(await historyOf(nodeId)).toEqual(["CONNECTED", "HEALTHY"]);
  });
}

/** The states that a node entered, from its events. A move between replicas adds none. */
async function historyOf(nodeId: string): Promise<readonly string[]> {
  const events = await eventsOf(database.store, nodeId);
  return events.flatMap(({ type, after }) => {
    const { connection, health } = (after ?? {}) as { connection?: string; health?: string };
    if (type === "node.connection.changed") return [connection ?? ""];
    return type === "node.health.changed" ? [health ?? ""] : [];
  });
}

describe("Rebalancer", () => {
  it("should give a new replica its share, without a disconnection or a declaration", async () => {
    live = [await startReplica()];
    await joinAll();
    live = [...live, await startReplica()];
    const [first, second] = live as [TestReplica, TestReplica];
    await eventually(async () => {
      await Promise.all(live.map((replica) => replica.renew()));
      expect(held(second)).toBeGreaterThanOrEqual(AGENTS / 2 - 1);
      // An agent that moves is held by neither for a moment.
      expect(held(first) + held(second)).toBeGreaterThanOrEqual(AGENTS);
    });
    expect(await second.metric("rollcall_health_moves_asked_total")).toBe(0);
    for (const { nodeId } of agents) {
      expect(await historyOf(nodeId)).toEqual(["CONNECTED", "HEALTHY"]);
    }
  });
});

describe("CutOffLeaver", () => {
  it("should move the agents of the only replica that cannot reach the store", async () => {
    live = [await startReplica()];
    await joinAll();
    live = [...live, await startReplica()];
    const [cutOff, other] = live as [TestReplica, TestReplica];
    // Let the replica list the other one before it loses the store.
    await eventually(() => expect(other.app.ready().agents?.ok).toBe(true));
    await eventually(async () => {
      await cutOff.renew();
      expect(agents.some(({ moves }) => moves > 0)).toBe(true);
    });
    cutOff.app.onLeaseDoubt({ sinceMs: systemClock.nowMs() });
    await eventually(() => expect(held(other)).toBe(AGENTS));
    for (const { nodeId } of agents) {
      expect(await historyOf(nodeId)).toEqual(["CONNECTED", "HEALTHY"]);
    }
  });
});
