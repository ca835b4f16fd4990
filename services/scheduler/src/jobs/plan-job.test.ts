import { create } from "@bufbuild/protobuf";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { ExecutionState } from "@rollcall/api/rollcall/scheduler/v1/job_pb";
import { JobSpecSchema, JobType } from "@rollcall/api/rollcall/work/v1/work_pb";
import { readAllocations } from "@rollcall/store";
import { addWorkNode, createTestDatabase, evaluateNode, eventually, type TestDatabase } from "@rollcall/testkit";
import { FakeWorkers } from "../testing/fake-workers.ts";
import { type JobInit, serviceOf, tellOf } from "../testing/job-specs.ts";
import { type Rig, startRig } from "../testing/rig.ts";

const NODES = ["n1", "n2"];

let database: TestDatabase;
let leading: Rig;
let standby: Rig;
let workers: FakeWorkers;
beforeAll(async () => {
  database = await createTestDatabase();
  for (const id of NODES) await addWorkNode(database.store, id, { millicores: 1_000 });
  await addWorkNode(database.store, "sick", { health: "UNHEALTHY" });
  workers = new FakeWorkers(database.store);
  leading = await startRig(database.store);
  await eventually(async () => expect(await leading.leads()).toBe(true));
  standby = await startRig(await database.openStore("standby"));
});
afterAll(async () => {
  await standby.close();
  await leading.close();
  await database.drop();
});

async function runs(job: string, count: number): Promise<void> {
  await eventually(async () => {
    await workers.work(NODES);
    const { executions } = await leading.jobs.listExecutions({ job, states: [ExecutionState.READY] });
    expect(executions).toHaveLength(count);
  });
}

describe("PlanJob", () => {
  it("should plan executions, in leading and standby schedulers, and change nothing", async () => {
    const before = await readAllocations(database.store.db, NODES);
    for (const { jobs } of [leading, standby]) {
      const plan = await jobs.planJob({ spec: serviceOf("planned", 9, { resources: { millicores: 250 } }) });
      expect(plan).toMatchObject({ waiting: 1, nodes: 3, version: 1, changed: true });
      const counts = NODES.map((node) => plan.executions.filter(({ nodeId }) => nodeId === node).length);
      expect(counts).toEqual([4, 4]);
      const refusals = Object.fromEntries(plan.refusals.map(({ reason, nodes }) => [reason, nodes]));
      expect(refusals).toEqual({ INSUFFICIENT_CORES: 2, NODE_UNHEALTHY: 1 });
    }
    expect(await readAllocations(database.store.db, NODES)).toEqual(before);
    await expect(leading.jobs.getJob({ name: "planned" })).rejects.toThrow("there is no job planned");
  });

  it("should count running executions, keep unchanged ones, and show those that would be replaced", async () => {
    await leading.jobs.submitJob({ spec: serviceOf("there", 3) });
    await runs("there", 3);
    const same = await standby.jobs.planJob({ spec: serviceOf("there", 3) });
    expect(same).toMatchObject({ changed: false, version: 1, waiting: 0 });
    expect(same.executions.map(({ replaced, index }) => [index, replaced])).toEqual([
      [0, false],
      [1, false],
      [2, false],
    ]);
    const task: JobInit["task"] = { case: "process", value: { command: ["sleep", "2"] } };
    const changed = await standby.jobs.planJob({ spec: serviceOf("there", 3, { task }) });
    expect(changed).toMatchObject({ changed: true, version: 2 });
    expect(changed.executions.map(({ replaced }) => replaced)).toEqual([true, true, true]);
    const other = await standby.jobs.planJob({ spec: serviceOf("other", 8) });
    // Three quarters of a core are already in use, so three executions wait.
    expect(other.waiting).toBe(3);
  });

  it("should return warnings, and refuse invalid jobs", async () => {
    const spec = create(JobSpecSchema, { name: "bad", type: JobType.BATCH });
    await expect(standby.jobs.planJob({ spec })).rejects.toThrow("task");
  });
});

describe("ExplainExecution", () => {
  it("should explain why replicas of a job wait", async () => {
    await leading.jobs.submitJob({ spec: serviceOf("large", 2, { resources: { millicores: 900 } }) });
    await eventually(async () => {
      const { job } = await leading.jobs.getJob({ name: "large" });
      expect(job?.executions?.waiting).toBeGreaterThan(0);
      const why = await standby.jobs.explainExecution({ subject: { case: "job", value: "large" } });
      expect(why.summary).toMatch(/job large is active; \d+ executions? (is|are) waiting, moving/);
      expect(why.refusals.map(({ reason }) => reason)).toContain("INSUFFICIENT_CORES");
    });
    await leading.jobs.stopJob({ name: "large" });
  });
});

describe("WatchExecutions and WatchJobs", () => {
  it("should send the current state, and then each change", async () => {
    await leading.jobs.submitJob({ spec: serviceOf("watched", 1) });
    await runs("watched", 1);
    const ending = new AbortController();
    const seen = new Map<string, ExecutionState>();
    const wanted: number[] = [];
    const watching = [
      (async () => {
        for await (const piece of standby.jobs.watchExecutions({ job: "watched" }, { signal: ending.signal })) {
          for (const { id, state } of piece.executions) seen.set(id, state);
        }
      })().catch(() => {}),
      (async () => {
        for await (const piece of standby.jobs.watchJobs({ name: "watched" }, { signal: ending.signal })) {
          for (const job of piece.jobs) wanted.push(job.wanted);
        }
      })().catch(() => {}),
    ];
    const ready = () => [...seen.values()].filter((state) => state === ExecutionState.READY);
    await eventually(() => expect([ready().length, wanted.at(-1)]).toEqual([1, 1]));
    await leading.jobs.scaleJob({ name: "watched", count: 2 });
    await eventually(async () => {
      await workers.work(NODES);
      expect([ready().length, wanted.at(-1)]).toEqual([2, 2]);
    });
    const nodes = new Set(
      (await leading.jobs.listExecutions({ job: "watched", states: [ExecutionState.READY] })).executions.map(
        ({ nodeId }) => nodeId,
      ),
    );
    for (const node of nodes) {
      await evaluateNode(database.store, node, "UNHEALTHY");
      await tellOf(database.store, node);
    }
    await eventually(() => expect([...seen.values()]).toEqual([ExecutionState.LOST, ExecutionState.LOST]));
    for (const node of nodes) {
      await evaluateNode(database.store, node, "HEALTHY");
      await tellOf(database.store, node);
    }
    await eventually(() => expect(ready()).toHaveLength(2));
    await leading.jobs.stopJob({ name: "watched" });
    await eventually(async () => {
      await workers.work(NODES);
      expect([...seen.values()]).toEqual([ExecutionState.STOPPED, ExecutionState.STOPPED]);
      expect(wanted.at(-1)).toBe(0);
    });
    ending.abort();
    await Promise.all(watching);
  });
});
