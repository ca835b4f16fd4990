import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { ExecutionState, JobState } from "@rollcall/api/rollcall/scheduler/v1/job_pb";
import { JobType } from "@rollcall/api/rollcall/work/v1/work_pb";
import { storeTimeMs } from "@rollcall/store";
import {
  addWorkNode,
  createTestDatabase,
  eventually,
  installSteppedClock,
  type SteppedClock,
  type TestDatabase,
} from "@rollcall/testkit";
import { FakeWorkers } from "../testing/fake-workers.ts";
import { serviceOf } from "../testing/job-specs.ts";
import { type Rig, startRig } from "../testing/rig.ts";

let database: TestDatabase;
let rig: Rig;
let workers: FakeWorkers;
let clock: SteppedClock;
beforeEach(async () => {
  database = await createTestDatabase();
  await addWorkNode(database.store, "n1");
  workers = new FakeWorkers(database.store);
  clock = await installSteppedClock(database.store);
  rig = await startRig(await database.openStore("stepped"));
});
afterEach(async () => {
  await rig.close();
  await database.drop();
});

async function step(seconds: number): Promise<void> {
  const beforeMs = await storeTimeMs(rig.store.db);
  await clock.step(seconds * 1_000);
  const stepMs = (await storeTimeMs(rig.store.db)) - beforeMs;
  expect(Math.sign(stepMs)).toBe(Math.sign(seconds));
}

const executionsOf = async (job: string) => (await rig.jobs.listExecutions({ job })).executions;
const stateOf = async (name: string) => (await rig.jobs.getJob({ name })).job?.state;

/** Wait until a job has completed, and return the number of its executions. */
async function complete(): Promise<number> {
  await eventually(async () => {
    await workers.work(["n1"]);
    expect(await stateOf("once")).toBe(JobState.COMPLETED);
  });
  return (await executionsOf("once")).length;
}

async function newestIsReady(): Promise<void> {
  await eventually(async () => {
    await workers.work(["n1"]);
    expect((await executionsOf("web"))[0]?.state).toBe(ExecutionState.READY);
  });
}

describe.each([-60, 60])("a scheduler whose database's clock steps by %d s", (seconds) => {
  it("should run a batch job that is submitted again, under this leader and the next", async () => {
    workers.fate = () => "COMPLETES";
    const spec = serviceOf("once", 1, { type: JobType.BATCH });
    await rig.jobs.submitJob({ spec });
    expect(await complete()).toBe(1);
    await step(seconds);
    await rig.jobs.submitJob({ spec });
    expect(await complete()).toBe(2);
    await rig.close();
    rig = await startRig(await database.openStore("next"));
    await step(seconds);
    await rig.jobs.submitJob({ spec });
    expect(await complete()).toBe(3);
  });

  it("should replace the execution of a service that is restarted", async () => {
    await rig.jobs.submitJob({ spec: serviceOf("web", 1) });
    await newestIsReady();
    const [first] = await executionsOf("web");
    await step(seconds);
    await rig.jobs.restartJob({ name: "web" });
    await eventually(async () => {
      await newestIsReady();
      expect((await executionsOf("web"))[0]?.id).not.toBe(first?.id);
    });
  });
});
