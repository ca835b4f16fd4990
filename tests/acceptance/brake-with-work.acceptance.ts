import { setImmediate as nextLoopTick } from "node:timers/promises";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { ExecutionState } from "../../libs/api/src/gen/rollcall/scheduler/v1/job_pb.ts";
import { systemClock } from "../../libs/process/src/index.ts";
import { listBrakes, lockBrake, readEvents, saveOrder } from "../../libs/store/src/index.ts";
import {
  createTestDatabase,
  eventually,
  FakeAgents,
  type FakeStream,
  type TestDatabase,
  until,
} from "../../libs/testkit/src/index.ts";
import { ManualClock } from "../../libs/testkit/src/time.ts";
import { setOperatorLabel } from "../../services/health/src/testing/policies.ts";
import { register, statesOf } from "../../services/health/src/testing/record.ts";
import { type TestReplica, TestReplicas } from "../../services/health/src/testing/test-replica.ts";
import { FakeWorkers } from "../../services/scheduler/src/testing/fake-workers.ts";
import { serviceOf } from "../../services/scheduler/src/testing/job-specs.ts";
import { type Rig, startRig } from "../../services/scheduler/src/testing/rig.ts";

// Nodes fall silent in simulated time. The brake decides, and the scheduler follows the brake in real time.
const HALF_MS = 1_600;
const UNHEALTHY_AFTER_MS = 3_000;
const BRAKE_TIMES = { clock: systemClock, everyMs: 50, renewEveryMs: 100, expiryMs: 60_000 };
const WORK = { executors: ["process"], millicores: 4_000, memoryBytes: "1000000", diskBytes: "1000000" };
/**
 * The shortest time in milliseconds between two releases by the brake, which releases one in ten nodes a minute. It is
 * a minute minus the time that can pass between two polls of the store.
 */
const LEAST_BETWEEN_RELEASES_MS = 50_000;
/** The time limit for two releases of one node a minute, on a slow machine. */
const RELEASES_LIMIT_MS = 400_000;
const { LOST, READY } = ExecutionState;

let database: TestDatabase;
let clock: ManualClock;
let agents: FakeAgents;
let replicas: TestReplicas;
let replica: TestReplica;
let scheduler: Rig;
let workers: FakeWorkers;
let streams: Map<string, FakeStream>;

beforeEach(async () => {
  database = await createTestDatabase();
  clock = new ManualClock();
  agents = new FakeAgents();
  replicas = new TestReplicas();
  streams = new Map();
  workers = new FakeWorkers(database.store);
  replica = await replicas.start({ store: await database.openStore(), clock, brakeTimes: BRAKE_TIMES });
  scheduler = await startRig(await database.openStore(), { timing: { pollMs: 100 } });
});

afterEach(async () => {
  await scheduler.close();
  agents.close();
  await replicas.close();
  await database.drop();
});

/** Create nodes in zones, each with one execution of a service. */
async function begin(sizes: Readonly<Record<string, number>>): Promise<void> {
  const { store } = database;
  const ids = Object.entries(sizes).flatMap(([zone, size]) => namesOf(zone, size));
  for (const id of ids) {
    const agent = agents.create(id);
    await register(store, [agent]);
    await setOperatorLabel(store, id, { key: "zone", value: zoneOf(id) });
    await store.db
      .updateTable("nodes")
      .set({ info: JSON.stringify({ work: WORK }), info_digest: "none" })
      .where("id", "=", id)
      .execute();
    const stream = await agent.join(replica.address);
    await stream.beatAcknowledged();
    streams.set(id, stream);
    await eventually(async () => expect((await statesOf(store, id))[1]).toMatch(/^HEALTHY/));
  }
  await pass(100, ids);
  await replica.renew();
  const loss = { lostAfter: durationFromMs(0) };
  await scheduler.jobs.submitJob({ spec: serviceOf("web", ids.length, { placement: { strategy: 2 }, loss }) });
  await working(async () => {
    const ready = await executions(READY);
    expect(ready.map(({ nodeId }) => nodeId).sort()).toEqual([...ids].sort());
  });
}

async function executions(...states: ExecutionState[]) {
  return (await scheduler.jobs.listExecutions({ job: "web", states, pageSize: 1_000 })).executions;
}

/** Let time pass for the replica while only these nodes beat. */
async function pass(ms: number, beating: readonly string[]): Promise<void> {
  for (let passedMs = 0; passedMs < ms; passedMs += 100) {
    clock.advance(100);
    await nextLoopTick();
    if (passedMs % 500 === 0) for (const id of beating) await streams.get(id)?.beatAcknowledged();
    replica.app.replica.evaluate();
  }
}

/** Lose all these nodes at the same moment. Resolves when the brake has engaged and the nodes are UNHEALTHY. */
async function lose(ids: readonly string[], brake: string): Promise<void> {
  const others = [...streams.keys()].filter((id) => !ids.includes(id));
  await pass(HALF_MS, others);
  for (const id of ids) workers.turnOff(id);
  await whileReporting(`the brake to be ${brake}`, async () => (await brakes()).includes(brake));
  await pass(UNHEALTHY_AFTER_MS, others);
  for (const id of ids)
    await eventually(async () => expect((await statesOf(database.store, id))[1]).toMatch(/^UNHEALTHY/));
}

async function brakes(): Promise<string> {
  const rows = await listBrakes(database.store.db);
  return ["none", ...rows.map(({ group, mode }) => `${group} ${mode}`)].join(", ");
}

/** Let each machine read its desired executions once. */
async function work(): Promise<void> {
  await replica.renew();
  await workers.work([...streams.keys()]);
}

const working = (assertion: () => Promise<void>) =>
  eventually(async () => {
    await work();
    await assertion();
  });

const whileReporting = (what: string, check: () => Promise<boolean>) =>
  until(what, async () => {
    await replica.renew();
    return (await check()) ? true : undefined;
  });

async function allowed() {
  return (await readEvents(database.store.db, { after: 0n, limit: 10_000, types: ["node.reactions.allowed"] })).events;
}

/** Expect that the executions of these nodes are replaced, and that their replacements are ready. */
async function expectMoved(ids: readonly string[]): Promise<void> {
  const all = await executions();
  const there = all.filter(({ nodeId }) => ids.includes(nodeId));
  expect(there.filter(({ replacedById }) => replacedById === "")).toEqual([]);
  expect(all.filter(({ state }) => state === READY)).toHaveLength(streams.size);
}

describe("work on nodes that are lost at once", () => {
  it("should all move at once if 40 % of the cluster are lost", async () => {
    await begin({ a: 3, b: 3, c: 4 });
    const lost = ["a1", "b1", "c1", "c2"];
    await lose(lost, "none");
    await working(() => expectMoved(lost));
    expect((await allowed()).map(({ subject }) => subject).sort()).toEqual(lost);
  });

  it("should move a tenth of a group a minute if 70 % of it are lost", async () => {
    await begin({ a: 10, b: 10 });
    const lost = namesOf("a", 7);
    await lose(lost, "zone=a PARTIAL");
    const early = new Set<string>();
    await until(
      "two releases",
      async () => {
        await work();
        // Ignore executions that are not released yet. They stay LOST and are not replaced.
        const moved = (await executions(LOST)).filter(({ replacedById }) => replacedById !== "");
        const released = new Set((await allowed()).map(({ subject }) => subject));
        for (const { nodeId } of moved) if (!released.has(nodeId)) early.add(nodeId);
        return released.size >= 2;
      },
      RELEASES_LIMIT_MS,
    );
    expect(early).toEqual(new Set());
    const [first, second] = await allowed();
    expect((second?.atMs ?? 0) - (first?.atMs ?? 0)).toBeGreaterThanOrEqual(LEAST_BETWEEN_RELEASES_MS);
    const released = (await allowed()).map(({ subject }) => subject);
    await working(async () => {
      const moved = (await executions(LOST)).filter(({ replacedById }) => replacedById !== "");
      expect(moved.map(({ nodeId }) => nodeId)).toEqual(expect.arrayContaining(released));
    });
  });

  it("should stay if all of a group are lost, until an operator releases it", async () => {
    await begin({ a: 6, b: 14 });
    const lost = namesOf("a", 6);
    await lose(lost, "zone=a FULL");
    await working(async () => expect(await executions(LOST)).toHaveLength(6));
    // Submit a job that the leader handles only after everything that was written before.
    await scheduler.jobs.submitJob({ spec: serviceOf("probe", 1) });
    await working(async () => {
      expect((await scheduler.jobs.getJob({ name: "probe" })).job?.executions?.ready).toBe(1);
    });
    expect(await allowed()).toEqual([]);
    expect((await executions()).map(({ replacedById }) => replacedById)).toEqual(Array(20).fill(""));
    await database.store.transaction(async (tx) => {
      await lockBrake(tx, "zone=a");
      await saveOrder(tx, "zone=a", { actor: "token:x", reason: "it burns" });
    });
    await working(() => expectMoved(lost));
    expect((await allowed()).map(({ reason }) => reason)).toEqual(Array(6).fill("OPERATOR_RELEASED"));
  });
});

function namesOf(zone: string, count: number): readonly string[] {
  return Array.from({ length: count }, (_, index) => `${zone}${index + 1}`);
}

function zoneOf(id: string): string {
  return id.slice(0, 1);
}
