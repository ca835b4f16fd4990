import { afterEach, beforeAll, describe, expect, it } from "@jest/globals";
import { systemClock } from "@rollcall/process";
import { createTestDatabase, eventually, type FakeAgent, FakeAgents, type TestDatabase } from "@rollcall/testkit";
import { eventsOf, register } from "../testing/record.ts";
import { type TestReplica, TestReplicas } from "../testing/test-replica.ts";

const AGENTS = 20;
const UNHEALTHY_AFTER_MS = 3_000;
/**
 * Maximum gap between an agent's Acks for the test to require that its node stays healthy. After a longer gap, the
 * machine was so busy that declaring the node unhealthy was correct.
 */
const HARMLESS_GAP_MS = 2_000;

const fakes = new FakeAgents();
const replicas = new TestReplicas();
let database: TestDatabase;
let agents: readonly FakeAgent[] = [];
let live: TestReplica[] = [];

beforeAll(async () => {
  database = await createTestDatabase();
});

afterEach(async () => {
  fakes.close();
  await replicas.close();
  await database.drop();
});

async function startReplica(): Promise<TestReplica> {
  const config = { "Orchestrator.NodeManager.DisconnectTimeout": UNHEALTHY_AFTER_MS };
  return replicas.start({ store: await database.openStore(), clock: systemClock, config });
}

const held = (replica: TestReplica) => replica.app.replica.nodes.sessions;

describe("a rolling restart of all replicas", () => {
  it("should make no node UNHEALTHY or disconnected", async () => {
    live = [await startReplica(), await startReplica()];
    agents = Array.from({ length: AGENTS }, (_, index) => fakes.create(`roll${index}`));
    await register(database.store, agents);
    const endpoints = () => live.map(({ address }) => address);
    for (const agent of agents) agent.live({ endpoints, beatEveryMs: 300 });
    const all = () => live.reduce((sum, replica) => sum + held(replica), 0);
    await eventually(() => expect(all()).toBe(AGENTS));
    for (let turn = 0; turn < 2; turn++) {
      const [ending, staying] = live as [TestReplica, TestReplica];
      live = [staying];
      const ended = ending.app.drain().then(() => ending.close());
      await eventually(() => expect(held(staying)).toBe(AGENTS));
      await ended;
      live = [staying, await startReplica()];
    }
    await eventually(() => expect(all()).toBe(AGENTS));
    for (const agent of agents) {
      const events = await eventsOf(database.store, agent.nodeId);
      const evaluated = events.filter(({ type }) => type === "node.health.changed");
      const connected = events.filter(({ type }) => type === "node.connection.changed");
      const moved = events.filter(({ type }) => type === "node.session.moved");
      if (agent.longestGapMs > HARMLESS_GAP_MS) continue;
      expect(evaluated).toHaveLength(1);
      expect(moved.length).toBeGreaterThan(0);
      // The node connected once, and the moves did not change its connection.
      expect(connected.map(({ after }) => after)).toEqual([{ connection: "CONNECTED" }]);
    }
  });
});
