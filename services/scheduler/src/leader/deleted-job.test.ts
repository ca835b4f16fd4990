import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { ExecutionState } from "@rollcall/api/rollcall/scheduler/v1/job_pb";
import { currentRevision, getExecutions, getJobs } from "@rollcall/store";
import { addWorkNode, createTestDatabase, eventually, type TestDatabase } from "@rollcall/testkit";
import { FakeWorkers } from "../testing/fake-workers.ts";
import { serviceOf } from "../testing/job-specs.ts";
import { type Rig, startRig } from "../testing/rig.ts";

let database: TestDatabase;
let rig: Rig;
let workers: FakeWorkers;
/** A promise that the leader waits for after each step; null to continue immediately. */
let gate: Promise<void> | null = null;
let waitsAtGate = () => {};
beforeAll(async () => {
  database = await createTestDatabase();
  await addWorkNode(database.store, "n1");
  workers = new FakeWorkers(database.store);
  const afterStep = async () => {
    if (gate !== null) waitsAtGate();
    await gate;
  };
  rig = await startRig(database.store, { timing: { pollMs: 100 }, afterStep });
  await eventually(async () => expect(await rig.leads()).toBe(true));
});
afterAll(async () => {
  await rig.close();
  await database.drop();
});

async function settled(assertion: () => Promise<void>): Promise<void> {
  await eventually(async () => {
    await workers.work(["n1"]);
    await assertion();
  });
}

const executionsIn = async (state: ExecutionState) =>
  (await rig.jobs.listExecutions({ job: "web", states: [state] })).executions.map(({ id }) => id);
const ready = () => executionsIn(ExecutionState.READY);

/** Run `happen` while the leader is paused, so that the leader later reads all changes together. */
async function betweenReads(happen: () => Promise<unknown>): Promise<void> {
  let open = () => {};
  const arrived = new Promise<void>((resolve) => {
    waitsAtGate = resolve;
  });
  gate = new Promise<void>((resolve) => {
    open = resolve;
  });
  try {
    await arrived;
    await happen();
    const revision = await currentRevision(database.store.db);
    await eventually(async () => expect(rig.position).toBeGreaterThanOrEqual(revision));
  } finally {
    gate = null;
    open();
  }
}

describe("a job that is deleted and submitted again before a leader has read either", () => {
  it("should run its new specification", async () => {
    await rig.jobs.submitJob({ spec: serviceOf("web", 1) });
    await settled(async () => expect(await ready()).toHaveLength(1));
    await rig.jobs.stopJob({ name: "web" });
    await settled(async () => expect(await executionsIn(ExecutionState.STOPPED)).toHaveLength(1));
    await betweenReads(async () => {
      await rig.jobs.deleteJob({ name: "web" });
      const task = { case: "process" as const, value: { command: ["sleep", "1000"] } };
      await rig.jobs.submitJob({ spec: serviceOf("web", 1, { resources: { millicores: 500 }, task }) });
    });
    await settled(async () => expect(await ready()).toHaveLength(1));
    const [job] = await getJobs(database.store.db, ["web"]);
    const [found] = await getExecutions(database.store.db, await ready());
    expect(found?.specDigest).toEqual(job?.specDigest);
    expect(found?.execution).toMatchObject({ version: 1, grant: { millicores: 500 } });
  });
});
