import { setImmediate as nextLoopTick } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import type { BrakeState } from "@rollcall/domain";
import { systemClock } from "@rollcall/process";
import { type EventRow, listBrakes, lockBrake, readEvents, type Store, saveFreeze, saveOrder } from "@rollcall/store";
import {
  createTestDatabase,
  eventually,
  type FakeAgent,
  FakeAgents,
  type FakeStream,
  type TestDatabase,
  until,
} from "@rollcall/testkit";
import { ManualClock } from "@rollcall/testkit/time";
import { setOperatorLabel } from "../testing/policies.ts";
import { command, register, statesOf } from "../testing/record.ts";
import { type TestReplica, TestReplicas } from "../testing/test-replica.ts";

// Nodes fall silent in manual time. The brake runs in real time: it releases nothing before it has seen two reports.
// The brake's periods are minutes, far longer than this test, so a PARTIAL brake releases nothing.

const HALF_MS = 1_600;
const UNHEALTHY_AFTER_MS = 3_000;
const SIZE_A = 6;
const SIZE_B = 8;
const BY = { actor: "token:test", reason: "as the test said" };

interface Member {
  readonly agent: FakeAgent;
  stream: FakeStream;
}

describe("mass loss", () => {
  let database: TestDatabase;
  let store: Store;
  let clock: ManualClock;
  let agents: FakeAgents;
  let replicas: TestReplicas;
  let running: TestReplica[];
  let members: Map<string, Member>;

  beforeEach(async () => {
    database = await createTestDatabase();
    store = database.store;
    clock = new ManualClock();
    agents = new FakeAgents();
    replicas = new TestReplicas();
    running = [];
    members = new Map();
    for (let count = 0; count < 2; count++) running.push(await startReplica());
    const ids = [...namesOf("a", SIZE_A), ...namesOf("b", SIZE_B)];
    for (const [index, id] of ids.entries()) await join(id, running[index % 2]);
    await pass(100);
    await reported();
  });

  afterEach(async () => {
    agents.close();
    await replicas.close();
    await database.drop();
  });

  async function startReplica(): Promise<TestReplica> {
    const own = await database.openStore();
    const brakeTimes = { clock: systemClock, everyMs: 20, renewEveryMs: 100, expiryMs: 60_000 };
    return replicas.start({ store: own, clock, brakeTimes });
  }

  async function join(id: string, replica: TestReplica | undefined): Promise<void> {
    const agent = members.get(id)?.agent ?? agents.create(id);
    if (!members.has(id)) {
      await register(store, [agent]);
      await setOperatorLabel(store, id, { key: "zone", value: id.slice(0, 1) });
    }
    const stream = await agent.join(replica?.address ?? "");
    await stream.beatAcknowledged();
    members.set(id, { agent, stream });
    await eventually(async () => expect((await statesOf(store, id))[1]).toMatch(/^HEALTHY/));
  }

  /** Advance time for both replicas while these nodes send heartbeats. */
  async function pass(ms: number, beating: readonly string[] = []): Promise<void> {
    for (let passedMs = 0; passedMs < ms; passedMs += 100) {
      clock.advance(100);
      await nextLoopTick();
      if (passedMs % 500 === 0) for (const id of beating) await members.get(id)?.stream.beatAcknowledged();
      for (const { app } of running) app.replica.evaluate();
    }
  }

  async function reported(): Promise<void> {
    for (const replica of running) await replica.renew();
  }

  /** Renew the leases until the check succeeds. */
  const whileReporting = (what: string, check: () => Promise<boolean>) =>
    until(what, async () => {
      await reported();
      return (await check()) ? true : undefined;
    });

  async function events(...types: EventRow["type"][]): Promise<readonly EventRow[]> {
    return (await readEvents(store.db, { after: 0n, limit: 10_000, types })).events;
  }

  const allowed = async () => (await events("node.reactions.allowed")).map(({ subject }) => subject).sort();

  const brakeOf = async (group: string): Promise<BrakeState> => {
    const row = (await listBrakes(store.db)).find((it) => it.group === group);
    return row === undefined ? "NORMAL" : row.frozen === null ? row.mode : "FROZEN";
  };

  const others = (...silent: readonly string[]) => [...members.keys()].filter((id) => !silent.includes(id));

  async function loseZoneA(): Promise<void> {
    const zone = namesOf("a", SIZE_A);
    await pass(HALF_MS, others(...zone));
    await whileReporting("the brake of zone a", async () => (await brakeOf("zone=a")) === "FULL");
  }

  it("should brake only the zone that falls silent, before the first of its nodes is declared", async () => {
    const zone = namesOf("a", SIZE_A);
    await loseZoneA();
    expect(await events("node.health.changed")).toHaveLength(SIZE_A + SIZE_B);
    expect(await brakeOf("cluster")).toBe("NORMAL");
    await pass(UNHEALTHY_AFTER_MS, others(...zone, "b1"));
    for (const id of [...zone, "b1"])
      await eventually(async () => expect((await statesOf(store, id))[1]).toMatch(/^UNHEALTHY/));
    await whileReporting("the single death's reaction", async () => (await allowed()).length > 0);
    expect(await allowed()).toEqual(["b1"]);
    const [event] = await events("node.reactions.allowed");
    expect(event).toMatchObject({
      reason: "NO_STORM",
      before: null,
      after: { group: "zone=b", brake: "NORMAL", lostSinceMs: expect.any(Number) },
    });
    const [set] = await events("brake.changed");
    expect(set).toMatchObject({
      subject: "zone=a",
      reason: "MASS_LOSS",
      before: { brake: "NORMAL" },
      after: { size: SIZE_A, silent: SIZE_A, lost: 0 },
    });

    await join("a1", running[0]);
    await whileReporting("the brake to give", async () => (await brakeOf("zone=a")) === "PARTIAL");
    for (const id of ["a2", "a3"]) await join(id, running[1]);
    await whileReporting("the storm to end", async () => (await brakeOf("zone=a")) === "NORMAL");
    await whileReporting("the reactions to the rest", async () => (await allowed()).length === 4);
    // No reaction is released for nodes that came back while the brake delayed their reactions.
    expect(await allowed()).toEqual(["a4", "a5", "a6", "b1"]);
  });

  it("should release once what an operator ordered, whichever process decides", async () => {
    const zone = namesOf("a", SIZE_A);
    await loseZoneA();
    await pass(UNHEALTHY_AFTER_MS, others(...zone));
    for (const id of zone) await eventually(async () => expect((await statesOf(store, id))[1]).toMatch(/^UNHEALTHY/));
    await store.transaction(async (tx) => {
      await lockBrake(tx, "zone=a");
      await saveOrder(tx, "zone=a", BY);
    });
    // Kill the decider in the middle of a release, at any point.
    const isDecider = (replica: TestReplica) => replica.metric('rollcall_brake_state{group="cluster"}');
    const [first] = running;
    const decider = (await isDecider(first as TestReplica)) === undefined ? running[1] : first;
    const killed = decider?.kill();
    running = running.filter((it) => it !== decider);
    await killed;
    await whileReporting("everything to go", async () => (await allowed()).length >= SIZE_A);
    await whileReporting("the brake to be lifted", async () => (await brakeOf("zone=a")) === "NORMAL");
    expect(await allowed()).toEqual(zone);
    const reasons = (await events("node.reactions.allowed")).map(({ reason }) => reason);
    expect(new Set(reasons)).toEqual(new Set(["OPERATOR_RELEASED"]));
  });

  it("should hold everything back while frozen, and not count goodbyes, rejections and deletions as losses", async () => {
    await store.transaction(async (tx) => {
      await lockBrake(tx, "cluster");
      await saveFreeze(tx, "cluster", BY);
    });
    await pass(UNHEALTHY_AFTER_MS + 100, others("b1"));
    await eventually(async () => expect((await statesOf(store, "b1"))[1]).toMatch(/^UNHEALTHY/));
    for (const id of namesOf("a", 4))
      members.get(id)?.stream.send({ case: "goodbye", value: { reason: "maintenance" } });
    await command(store, "a5", "reject");
    await command(store, "a6", "delete");
    await eventually(async () => expect(await allowed()).toEqual(namesOf("a", 4)));
    await reported();
    await store.transaction((tx) => saveFreeze(tx, "cluster", null));
    await whileReporting("the reaction to the loss", async () => (await allowed()).includes("b1"));
    expect(await events("brake.changed")).toEqual([]);
    const reasons = (await events("node.reactions.allowed")).map(({ reason }) => reason);
    expect(reasons).toEqual([...Array(4).fill("AGENT_SHUTDOWN"), "NO_STORM"]);
  });
});

function namesOf(zone: string, count: number): readonly string[] {
  return Array.from({ length: count }, (_, index) => `${zone}${index + 1}`);
}
