import { afterAll, afterEach, beforeAll, describe, expect, it } from "@jest/globals";
import type { SilenceEvidence } from "@rollcall/domain";
import { createTestDatabase, eventually, FakeAgents, type TestDatabase } from "@rollcall/testkit";
import { ManualClock } from "@rollcall/testkit/time";
import { groupPolicy, setOperatorLabel, setPolicy } from "../testing/policies.ts";
import { eventsOf, register, statesOf } from "../testing/record.ts";
import { type TestReplica, TestReplicas } from "../testing/test-replica.ts";

const agents = new FakeAgents();
const replicas = new TestReplicas();
let database: TestDatabase;
let replica: TestReplica;

beforeAll(async () => {
  database = await createTestDatabase();
  replica = await replicas.start({ store: database.store });
});

afterEach(() => agents.close());

afterAll(async () => {
  await replicas.close();
  await database.drop();
});

async function become(nodeId: string, state: string): Promise<void> {
  await eventually(async () => {
    const [, health] = await statesOf(database.store, nodeId);
    expect(health?.split(" ")[0]).toBe(state);
  });
}

const figure = async (name: string) => (await replica.metric(`rollcall_health_${name}`)) ?? 0;

describe("a node declared UNHEALTHY for silence", () => {
  it("should have evidence in its event: silence, threshold, policy, and time not counted", async () => {
    const agent = agents.create("silent");
    await register(database.store, [agent]);
    await setOperatorLabel(database.store, "silent", { key: "zone", value: "a" });
    const patient = groupPolicy("patient", "zone=a", { unhealthyAfterMs: 4_000 });
    await setPolicy(database.store, patient);
    await replica.caughtUp();
    const stream = await agent.join(replica.address);
    await stream.beatAcknowledged();
    await become("silent", "HEALTHY");
    // Pause the replica for 30 s. Only a few ticks of that count as observed time.
    if (!(replica.clock instanceof ManualClock)) throw new Error("the clock must be a manual one");
    replica.clock.advance(30_000);
    replica.app.replica.evaluate();
    await replica.pass(4_000);
    await become("silent", "UNHEALTHY");
    const [, event] = await eventsOf(database.store, "silent", ["node.health.changed"]);
    expect(event?.after).toMatchObject({
      health: "UNHEALTHY",
      evidence: {
        replica: replica.instance,
        thresholdMs: 4_000,
        value: "unhealthyAfter",
        policy: "group patient",
      },
    });
    const { evidence } = (event?.after ?? {}) as unknown as { readonly evidence: SilenceEvidence };
    const { silentMs, grantedMs, lastReceivedAgoMs } = evidence;
    expect(silentMs).toBeGreaterThanOrEqual(4_000);
    expect(silentMs).toBeLessThan(4_300);
    expect(grantedMs).toBeGreaterThan(29_000);
    expect(silentMs + grantedMs).toBe(lastReceivedAgoMs);
    expect(await figure('deadline_extensions_total{cause="stall"}')).toBe(1);
    expect(await figure('deadline_extension_seconds_total{cause="stall"}')).toBeGreaterThan(29);
  });

  it("should count as a suspect declaration when it sends a heartbeat again within its threshold", async () => {
    const agent = agents.create("suspect");
    await register(database.store, [agent]);
    const comeAndGo = async (awayMs: number) => {
      await (await agent.join(replica.address)).beatAcknowledged();
      await become("suspect", "HEALTHY");
      await replica.pass(3_200);
      await become("suspect", "UNHEALTHY");
      await replica.pass(awayMs);
    };
    await comeAndGo(3_200);
    await comeAndGo(1_000);
    expect(await figure("suspect_declarations_total")).toBe(0);
    await (await agent.join(replica.address)).beatAcknowledged();
    expect(await figure("suspect_declarations_total")).toBe(1);
    expect(await figure("heap_bytes_per_session")).toBeGreaterThan(0);
  });
});
