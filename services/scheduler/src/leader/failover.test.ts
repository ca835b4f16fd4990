import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { ExecutionState, JobState } from "@rollcall/api/rollcall/scheduler/v1/job_pb";
import { JobType } from "@rollcall/api/rollcall/work/v1/work_pb";
import {
  commitWork,
  readAllocations,
  readLease,
  readLiveExecutions,
  SCHEDULER_LEASE,
  type Store,
} from "@rollcall/store";
import { addWorkNode, createTestDatabase, eventually, seededRandom, type TestDatabase } from "@rollcall/testkit";
import type { LeaderStep } from "../index.ts";
import { FakeWorkers } from "../testing/fake-workers.ts";
import { serviceOf } from "../testing/job-specs.ts";
import { type Rig, startRig } from "../testing/rig.ts";

const NODES = ["n1", "n2", "n3", "n4"];
const MILLICORES = 2_000;
/**
 * Short intervals, but a long expiry, because on a slow machine, a lease must not expire. Failover is fast
 * nevertheless, because a released lease goes to another process immediately.
 */
const FAST = { renewEveryMs: 100, expiryMs: 10_000, pollMs: 200 };

let database: TestDatabase;
let store: Store;
let workers: FakeWorkers;
beforeAll(async () => {
  database = await createTestDatabase();
  store = database.store;
  for (const id of NODES) await addWorkNode(store, id, { millicores: MILLICORES });
  workers = new FakeWorkers(store);
});
afterAll(() => database.drop());

/** Check that the allocations of nodes equal what executions hold, and never exceed the nodes' resources. */
async function expectSound(): Promise<void> {
  // Read both from one snapshot: the leader can release resources at any time.
  const [live, allocations] = await store.db
    .transaction()
    .setIsolationLevel("repeatable read")
    .execute(async (tx) => {
      const executions = await readLiveExecutions(tx, { after: "", limit: 10_000 });
      return [executions, await readAllocations(tx, NODES)] as const;
    });
  const held = new Map<string, number>();
  for (const { execution } of live) {
    if (!execution.holds) continue;
    held.set(execution.nodeId, (held.get(execution.nodeId) ?? 0) + execution.grant.millicores);
  }
  for (const [nodeId, { millicores }] of allocations) {
    expect([nodeId, millicores]).toEqual([nodeId, held.get(nodeId) ?? 0]);
    expect(millicores).toBeLessThanOrEqual(MILLICORES);
  }
}

async function readyOf(rig: Rig, job: string): Promise<readonly number[]> {
  const states = [ExecutionState.READY];
  const { executions } = await rig.jobs.listExecutions({ job, states, pageSize: 1_000 });
  return executions.map(({ index }) => index).sort((one, other) => one - other);
}

async function holderOf(): Promise<string | null> {
  return (await readLease(store.db, SCHEDULER_LEASE))?.instance ?? null;
}

describe("two schedulers", () => {
  it("should have one leader, and the other take over when it ends, with nothing placed twice", async () => {
    const one = await startRig(await database.openStore("one"), { timing: FAST });
    await eventually(async () => expect(await one.leads()).toBe(true));
    const other = await startRig(await database.openStore("other"), { timing: FAST });
    await other.jobs.submitJob({ spec: serviceOf("kept", 6) });
    await eventually(async () => {
      await workers.work(NODES);
      expect(await readyOf(other, "kept")).toEqual([0, 1, 2, 3, 4, 5]);
    });
    expect(await other.leads()).toBe(false);
    await one.close();
    await eventually(async () => expect(await other.leads()).toBe(true));
    await other.jobs.scaleJob({ name: "kept", count: 8 });
    await eventually(async () => {
      await workers.work(NODES);
      expect(await readyOf(other, "kept")).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
    });
    await expectSound();
    await other.jobs.stopJob({ name: "kept" });
    await eventually(async () => {
      await workers.work(NODES);
      expect(await readyOf(other, "kept")).toEqual([]);
    });
    await other.close();
  });

  it("should never over-allocate, whichever of them gets submissions", async () => {
    const rigs = await Promise.all([
      startRig(await database.openStore("one"), { timing: FAST }),
      startRig(await database.openStore("other"), { timing: FAST }),
    ]);
    const names = Array.from({ length: 12 }, (_, number) => `crowd-${number}`);
    await Promise.all(
      names.map((name, number) =>
        (rigs[number % 2] as Rig).jobs.submitJob({ spec: serviceOf(name, 5, { resources: { millicores: 400 } }) }),
      ),
    );
    // Four nodes take five executions each.
    await eventually(async () => {
      await workers.work(NODES);
      const allocations = [...(await readAllocations(store.db, NODES)).values()];
      expect(allocations.map(({ executions }) => executions)).toEqual([5, 5, 5, 5]);
    });
    await expectSound();
    for (const name of names) await (rigs[0] as Rig).jobs.stopJob({ name });
    await eventually(async () => {
      await workers.work(NODES);
      const allocations = [...(await readAllocations(store.db, NODES)).values()];
      expect(allocations.map(({ millicores }) => millicores)).toEqual([0, 0, 0, 0]);
    });
    for (const rig of rigs) await rig.close();
  });

  it("should leave nothing behind wherever the leader ends", async () => {
    const seed = Date.now() % 100_000;
    const random = seededRandom(seed);
    let crashes = 0;
    const afterStep = (step: LeaderStep) => {
      if (step === "loaded" || crashes >= 40 || random() > 0.25) return;
      crashes += 1;
      throw new Error(`crash after ${step} (seed ${seed})`);
    };
    const rigs = await Promise.all(
      ["one", "other"].map(async (name) => startRig(await database.openStore(name), { timing: FAST, afterStep })),
    );
    const [rig] = rigs as [Rig, Rig];
    await rig.jobs.submitJob({ spec: serviceOf("steady", 7) });
    await rig.jobs.submitJob({ spec: serviceOf("once", 4, { type: JobType.BATCH }) });
    const own = new Set<string>();
    workers.fate = (id) => (own.has(id) ? "COMPLETES" : "RUNS");
    let count = 7;
    for (let round = 0; round < 12 || crashes < 12; round += 1) {
      for (const { id } of (await rig.jobs.listExecutions({ job: "once", pageSize: 100 })).executions) own.add(id);
      count = 3 + Math.floor(random() * 6);
      await rig.jobs.scaleJob({ name: "steady", count });
      await workers.work(NODES);
    }
    await eventually(async () => {
      for (const { id } of (await rig.jobs.listExecutions({ job: "once", pageSize: 100 })).executions) own.add(id);
      await workers.work(NODES);
      expect(await readyOf(rig, "steady")).toEqual(Array.from({ length: count }, (_, index) => index));
      expect((await rig.jobs.getJob({ name: "once" })).job?.state).toBe(JobState.COMPLETED);
    });
    await expectSound();
    workers.fate = () => "RUNS";
    await rig.jobs.stopJob({ name: "steady" });
    await eventually(async () => {
      await workers.work(NODES);
      expect(await readyOf(rig, "steady")).toEqual([]);
    });
    for (const it of rigs) await it.close();
  });
});

describe("a leader that was paused", () => {
  it("should write nothing when it resumes", async () => {
    let wake = () => {};
    let isStopped = false;
    const stopped = new Promise<void>((resolve) => {
      wake = resolve;
    });
    let stopAtPlan = false;
    // Pause the leader between deciding and writing, as SIGSTOP would.
    const afterStep = async (step: LeaderStep) => {
      if (step !== "planned" || !stopAtPlan || isStopped) return;
      isStopped = true;
      await stopped;
    };
    const old = await startRig(await database.openStore("old"), { timing: FAST, afterStep });
    await eventually(async () => expect(await old.leads()).toBe(true));
    stopAtPlan = true;
    await old.jobs.submitJob({ spec: serviceOf("woken", 3) });
    await eventually(() => expect(isStopped).toBe(true));
    // Delete the lease, as another process does after its expiry.
    await store.db.deleteFrom("leases").where("name", "=", SCHEDULER_LEASE).execute();
    const next = await startRig(await database.openStore("next"), { timing: FAST });
    await eventually(async () => {
      await workers.work(NODES);
      expect(await readyOf(next, "woken")).toEqual([0, 1, 2]);
    });
    await eventually(async () => expect(await holderOf()).toBe(next.instance));
    const before = await readLiveExecutions(store.db, { after: "", limit: 1_000 });
    wake();
    await eventually(async () => expect(await old.leads()).toBe(false));
    await old.close();
    const after = await readLiveExecutions(store.db, { after: "", limit: 1_000 });
    expect(after.map(({ execution }) => execution)).toEqual(before.map(({ execution }) => execution));
    expect(await holderOf()).toBe(next.instance);
    const plan = { executions: [], jobs: [], drains: [] };
    const jobOf = () => ({ version: 1, specDigest: new Uint8Array(), createdAtMs: 0 });
    const stale = { instance: old.instance, plan, events: [], jobOf, specDigestOf: () => new Uint8Array() };
    expect(await commitWork(store.reserved, stale)).toEqual({ outcome: "FENCED" });
    await next.close();
  });
});
