import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { type Execution, ExecutionState } from "@rollcall/api/rollcall/scheduler/v1/job_pb";
import { DesiredState } from "@rollcall/api/rollcall/work/v1/work_pb";
import { ExecutionIds } from "@rollcall/domain";
import { describeError } from "@rollcall/errors";
import {
  getNode,
  type ReportedExecution,
  readAllocations,
  readEvents,
  removeNode,
  saveObservations,
} from "@rollcall/store";
import { addWorkNode, createTestDatabase, eventually, type TestDatabase } from "@rollcall/testkit";
import { serviceOf } from "../testing/job-specs.ts";
import { type Rig, startRig } from "../testing/rig.ts";

let database: TestDatabase;
let rig: Rig;
let reports = 0;
beforeAll(async () => {
  database = await createTestDatabase();
  for (const id of ["n1", "leaving", "gone"]) await addWorkNode(database.store, id, { gpuUuids: [`${id}-gpu`] });
  await say("gone", "orphan00", { job: "forgotten" });
  await remove("gone");
  rig = await startRig(database.store);
  await eventually(async () => expect(await rig.leads()).toBe(true));
});
afterAll(async () => {
  await rig.close();
  await database.drop();
});

/** Report from a node that it runs an execution, or what happened to it. */
async function say(nodeId: string, id: string, facts: Partial<ReportedExecution>): Promise<void> {
  reports += 1;
  const one: ReportedExecution = {
    ...{ id, observed: "RUNNING", startedAtMs: 1, endedAtMs: null, end: null, exitCode: null, signal: null },
    ...{ message: "", job: "web", specDigest: null, ...facts },
  };
  await saveObservations(database.store, [{ nodeId, epoch: 1, number: reports, whole: false, executions: [one] }]);
}

async function remove(nodeId: string): Promise<void> {
  await database.store.change(async (tx) => {
    const node = await getNode(tx, nodeId);
    if (node === null) throw new Error(`there is no node ${nodeId}`);
    await removeNode(tx, node, { actor: "token:x", reason: "TESTED" });
    const event = { subject: nodeId, actor: "token:x", reason: "TESTED", message: "", before: null, after: null };
    return { result: null, events: [{ ...event, type: "node.deleted" }] };
  });
}

async function execution(id: string): Promise<Execution | undefined> {
  return (await rig.jobs.getExecution({ execution: id })).execution;
}

const orphaned = (id: string) =>
  eventually(async () => expect((await execution(id))?.state).toBe(ExecutionState.ORPHANED));

const endsOf = async (id: string) =>
  (await readEvents(database.store.db, { after: 0n, limit: 1_000 })).events.filter(
    ({ type, after }) => type === "job.execution.ended" && JSON.stringify(after).includes(id),
  );

describe("an orphan", () => {
  it("should be shown as an orphan until its node has stopped it on request, without counting in its job", async () => {
    await rig.jobs.submitJob({ spec: serviceOf("web", 1) });
    await say("n1", "orphan01", {});
    await orphaned("orphan01");
    await rig.jobs.stopExecution({ execution: "orphan01", reason: "not mine" });
    await eventually(async () => {
      expect(await execution("orphan01")).toMatchObject({
        ...{ state: ExecutionState.ORPHANED, desired: DesiredState.STOP, version: 0 },
        ...{ reason: "EXECUTION_STOPPED", message: "not mine" },
      });
    });
    expect((await rig.jobs.getJob({ name: "web" })).job?.executions).toMatchObject({ stopping: 1 });
    await say("n1", "orphan01", { observed: "ENDED", end: "STOPPED", endedAtMs: 2 });
    await eventually(async () => {
      const ended = { state: ExecutionState.STOPPED, desired: DesiredState.FORGET, reason: "EXECUTION_STOPPED" };
      expect(await execution("orphan01")).toMatchObject(ended);
    });
    expect(await endsOf("orphan01")).toMatchObject([{ before: { state: "ORPHANED" }, after: { state: "STOPPED" } }]);
    const states = (await rig.jobs.listExecutions({ job: "web" })).executions.map(({ state }) => state);
    expect(states.filter((state) => state !== ExecutionState.STOPPED)).toEqual([ExecutionState.PENDING]);
  });

  it("should end when its node is deleted, also while no process led", async () => {
    await say("leaving", "orphan02", { job: "forgotten" });
    await orphaned("orphan02");
    await remove("leaving");
    await eventually(async () => {
      const ended = { state: ExecutionState.STOPPED, reason: "NODE_DELETED", desired: DesiredState.STOP };
      expect(await execution("orphan02")).toMatchObject(ended);
    });
    expect(await endsOf("orphan02")).toHaveLength(1);
    await expect(rig.jobs.getExecution({ execution: "orphan00" })).rejects.toThrow("execution orphan00 not found");
  });

  it("should be adopted with the ports and GPUs that it runs with", async () => {
    await rig.jobs.submitJob({ spec: serviceOf("adopting", 2) });
    const before = (await readAllocations(database.store.db, ["n1"])).get("n1");
    await say("n1", "orphan03", { job: "adopting", ports: { http: 20_777 }, gpuUuids: ["n1-gpu"] });
    await orphaned("orphan03");
    await rig.jobs.adoptExecution({ execution: "orphan03" });
    await eventually(async () => expect((await execution("orphan03"))?.state).toBe(ExecutionState.RUNNING));
    expect(await execution("orphan03")).toMatchObject({ ports: { http: 20_777 }, gpuUuids: ["n1-gpu"] });
    const after = (await readAllocations(database.store.db, ["n1"])).get("n1");
    expect(before).toMatchObject({ gpuUuids: [], ports: [] });
    expect(after).toMatchObject({ gpuUuids: ["n1-gpu"], ports: [20_777] });
  });

  it("should not be adopted by a job that wants no executions", async () => {
    await rig.jobs.submitJob({ spec: serviceOf("none", 1) });
    await rig.jobs.scaleJob({ name: "none", count: 0 });
    await say("n1", "orphan04", { job: "none" });
    await orphaned("orphan04");
    const refused = await rig.jobs.adoptExecution({ execution: "orphan04" }).catch(describeError);
    expect(refused).toMatchObject({ reason: "JOB_COUNT_IS_ZERO", metadata: { job: "none" } });
    expect((await execution("orphan04"))?.state).toBe(ExecutionState.ORPHANED);
  });

  it("should not be adopted under an id from the future, but can be stopped", async () => {
    await rig.jobs.submitJob({ spec: serviceOf("ahead", 1) });
    const atMs = Date.now() + 86_400_000;
    const id = new ExecutionIds("").next(atMs, Math.random);
    await say("n1", id, { job: "ahead" });
    await orphaned(id);
    const refused = await rig.jobs.adoptExecution({ execution: id }).catch(describeError);
    const metadata = { execution: id, time: new Date(atMs).toISOString() };
    expect(refused).toMatchObject({ reason: "EXECUTION_ID_AHEAD", metadata });
    await rig.jobs.scaleJob({ name: "ahead", count: 2 });
    await eventually(async () => {
      const ids = (await rig.jobs.listExecutions({ job: "ahead" })).executions.map((one) => one.id);
      expect(ids).toHaveLength(3);
      for (const other of ids) expect(other <= id).toBe(true);
    });
    await rig.jobs.stopExecution({ execution: id });
    await eventually(async () => expect((await execution(id))?.desired).toBe(DesiredState.STOP));
  });

  it("should be adopted under an id of this minute", async () => {
    await rig.jobs.submitJob({ spec: serviceOf("now", 1) });
    const id = new ExecutionIds("").next(Date.now() + 10_000, Math.random);
    await say("n1", id, { job: "now" });
    await orphaned(id);
    await rig.jobs.adoptExecution({ execution: id });
    await eventually(async () => expect((await execution(id))?.state).toBe(ExecutionState.RUNNING));
  });
});
