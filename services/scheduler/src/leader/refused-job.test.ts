import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { ExecutionState, JobState } from "@rollcall/api/rollcall/scheduler/v1/job_pb";
import { hasSchedulerLed } from "@rollcall/store";
import { addWorkNode, createTestDatabase, eventually, type TestDatabase } from "@rollcall/testkit";
import { FakeWorkers } from "../testing/fake-workers.ts";
import { serviceOf } from "../testing/job-specs.ts";
import { startRig } from "../testing/rig.ts";

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());

const led = () => database.store.transaction(hasSchedulerLed);

describe("a leader", () => {
  it("should be known to have led, even if it placed nothing and ended", async () => {
    expect(await led()).toBe(false);
    const rig = await startRig(database.store);
    await eventually(async () => expect(await rig.leads()).toBe(true));
    await rig.close();
    expect(await led()).toBe(true);
  });

  it("should load everything except a job that the current rules refuse, and say why it is not placed", async () => {
    await addWorkNode(database.store, "n1");
    const workers = new FakeWorkers(database.store);
    const before = await startRig(database.store);
    for (const name of ["older", "other"]) await before.jobs.submitJob({ spec: serviceOf(name, 1) });
    await eventually(async () => {
      await workers.work(["n1"]);
      const ready = await before.jobs.listExecutions({ states: [ExecutionState.READY] });
      expect(ready.executions).toHaveLength(2);
    });
    await before.close();
    // A spec that an older release accepted and this one refuses.
    const spec = { name: "older", type: "JOB_TYPE_SERVICE", count: 2, selector: "a in", maxRunTime: "60s" };
    await database.store.db
      .updateTable("jobs")
      .set({ spec: JSON.stringify(spec), count: 2 })
      .where("name", "=", "older")
      .execute();
    const rig = await startRig(database.store);
    await eventually(async () => expect(await rig.leads()).toBe(true));
    await rig.jobs.scaleJob({ name: "other", count: 2 });
    await eventually(async () => {
      await workers.work(["n1"]);
      const { executions } = await rig.jobs.listExecutions({ job: "other", states: [ExecutionState.READY] });
      expect(executions).toHaveLength(2);
    });
    const { job } = await rig.jobs.getJob({ name: "older" });
    expect(job).toMatchObject({ state: JobState.ACTIVE, executions: { ready: 1, waiting: 1 } });
    for (const field of ["selector", "task", "max_run_time"]) expect(job?.message).toContain(`${field}: `);
    const why = await rig.jobs.explainExecution({ subject: { case: "job", value: "older" } });
    expect(why.summary).toContain("this release does not accept the job");
    await rig.jobs.submitJob({ spec: serviceOf("older", 2, { update: { maxParallel: 2 } }) });
    await eventually(async () => {
      await workers.work(["n1"]);
      const { executions } = await rig.jobs.listExecutions({ job: "older", states: [ExecutionState.READY] });
      expect(executions.map(({ version }) => version)).toEqual([2, 2]);
    });
    await rig.close();
  });
});
