import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { ExecutionState, JobState } from "@rollcall/api/rollcall/scheduler/v1/job_pb";
import { DesiredState, JobType } from "@rollcall/api/rollcall/work/v1/work_pb";
import { readAllocations, readEvents, saveObservations } from "@rollcall/store";
import {
  addWorkNode,
  connectNode,
  createTestDatabase,
  evaluateNode,
  eventually,
  refusalOf,
  type TestDatabase,
} from "@rollcall/testkit";
import { FakeWorkers } from "../testing/fake-workers.ts";
import { allowReaction, serviceOf, tellOf } from "../testing/job-specs.ts";
import { type Rig, startRig } from "../testing/rig.ts";

const NODES = ["n1", "n2", "n3"];

let database: TestDatabase;
let rig: Rig;
let workers: FakeWorkers;
beforeAll(async () => {
  database = await createTestDatabase();
  for (const id of NODES) await addWorkNode(database.store, id, { labels: { kind: "plain" } });
  workers = new FakeWorkers(database.store);
  rig = await startRig(database.store);
  await eventually(async () => expect(await rig.leads()).toBe(true));
});
afterAll(async () => {
  await rig.close();
  await database.drop();
});

async function executionsOf(job: string, states: ExecutionState[] = []) {
  return (await rig.jobs.listExecutions({ job, states, pageSize: 1_000 })).executions;
}

const READY = [ExecutionState.READY];

async function settled(assertion: () => Promise<void>): Promise<void> {
  await eventually(async () => {
    await workers.work(NODES);
    await assertion();
  });
}

const typesOf = async (subject: string) =>
  (await readEvents(database.store.db, { after: 0n, limit: 1_000, subject })).events.map(({ type }) => type);

describe("a leader", () => {
  it("should place a service, and show how it runs", async () => {
    await rig.jobs.submitJob({ spec: serviceOf("web", 4) });
    await settled(async () => expect(await executionsOf("web", READY)).toHaveLength(4));
    const { job } = await rig.jobs.getJob({ name: "web" });
    expect(job).toMatchObject({ wanted: 4, executions: { ready: 4, waiting: 0, pending: 0 } });
    const allocations = await readAllocations(database.store.db, NODES);
    const taken = [...allocations.values()].reduce((sum, { millicores }) => sum + millicores, 0);
    expect(taken).toBe(1_000);
    expect((await executionsOf("web")).map(({ index }) => index).sort()).toEqual([0, 1, 2, 3]);
    expect(await typesOf("web")).toEqual(expect.arrayContaining(["job.submitted", "job.executions.placed"]));
  });

  it("should scale up and down, and return what is no longer needed", async () => {
    await rig.jobs.submitJob({ spec: serviceOf("scaled", 2) });
    await settled(async () => expect(await executionsOf("scaled", READY)).toHaveLength(2));
    await rig.jobs.scaleJob({ name: "scaled", count: 5 });
    await settled(async () => expect(await executionsOf("scaled", READY)).toHaveLength(5));
    await rig.jobs.scaleJob({ name: "scaled", count: 1 });
    await settled(async () => {
      expect(await executionsOf("scaled", READY)).toHaveLength(1);
      expect(await executionsOf("scaled", [ExecutionState.STOPPED])).toHaveLength(4);
    });
  });

  it("should complete a batch job, and retry a failed execution elsewhere in time", async () => {
    const others = new Set((await executionsOf("")).map(({ id }) => id));
    const failed = new Set<string>();
    workers.fate = (id, index) => {
      if (others.has(id)) return "RUNS";
      if (index !== 1 || failed.size > 0) return "COMPLETES";
      failed.add(id);
      return "FAILS";
    };
    const retry = { attempts: 2, interval: durationFromMs(100) };
    await rig.jobs.submitJob({ spec: serviceOf("batch", 3, { type: JobType.BATCH, retry }) });
    await settled(async () => {
      const { job } = await rig.jobs.getJob({ name: "batch" });
      expect(job?.state).toBe(JobState.COMPLETED);
    });
    workers.fate = () => "RUNS";
    const ended = await executionsOf("batch");
    expect(ended.map(({ state }) => state).sort()).toEqual([
      ...[ExecutionState.COMPLETED, ExecutionState.COMPLETED, ExecutionState.COMPLETED, ExecutionState.FAILED],
    ]);
    expect(ended.find(({ attempt }) => attempt === 1)).toMatchObject({ index: 1 });
    expect((await typesOf("batch")).filter((type) => type === "job.execution.ended")).toHaveLength(4);
  });

  it("should stop a job, and restart it when it is submitted again", async () => {
    await rig.jobs.submitJob({ spec: serviceOf("stopped", 2) });
    await settled(async () => expect(await executionsOf("stopped", READY)).toHaveLength(2));
    await rig.jobs.stopJob({ name: "stopped" });
    await settled(async () => expect(await executionsOf("stopped", [ExecutionState.STOPPED])).toHaveLength(2));
    await rig.jobs.submitJob({ spec: serviceOf("stopped", 2) });
    await settled(async () => expect(await executionsOf("stopped", READY)).toHaveLength(2));
  });

  it("should replace executions of a service for a new version and on restart, and keep it complete during that", async () => {
    const update = { maxParallel: 1, minReadyTime: durationFromMs(0) };
    await rig.jobs.submitJob({ spec: serviceOf("rolled", 2, { update }) });
    await settled(async () => expect(await executionsOf("rolled", READY)).toHaveLength(2));
    const task = { case: "process" as const, value: { command: ["sleep", "1"] } };
    await rig.jobs.submitJob({ spec: serviceOf("rolled", 2, { update, task }) });
    await settled(async () => {
      const ready = await executionsOf("rolled", READY);
      expect(ready.map(({ version }) => version)).toEqual([2, 2]);
    });
    const before = (await executionsOf("rolled", READY)).map(({ id }) => id);
    await rig.jobs.restartJob({ name: "rolled" });
    await settled(async () => {
      const ready = await executionsOf("rolled", READY);
      expect(ready).toHaveLength(2);
      for (const { id } of ready) expect(before).not.toContain(id);
    });
  });

  it("should run a daemon on every node that matches, also on one that joins later", async () => {
    await rig.jobs.submitJob({ spec: serviceOf("daemon", 0, { type: JobType.DAEMON }) });
    await settled(async () => expect(await executionsOf("daemon", READY)).toHaveLength(3));
    await addWorkNode(database.store, "n4");
    NODES.push("n4");
    await tellOf(database.store, "n4");
    await settled(async () => {
      const nodes = (await executionsOf("daemon", READY)).map(({ nodeId }) => nodeId);
      expect(nodes.sort()).toEqual(["n1", "n2", "n3", "n4"]);
    });
  });

  it("should do nothing about a node that is lost until reactions are allowed, and then replace", async () => {
    await rig.jobs.submitJob({ spec: serviceOf("moving", 3, { constraints: { os: "linux" } }) });
    await settled(async () => expect(await executionsOf("moving", READY)).toHaveLength(3));
    const [victim] = await executionsOf("moving", READY);
    const lost = victim?.nodeId ?? "";
    const there = (await executionsOf("moving", READY)).filter(({ nodeId }) => nodeId === lost).map(({ id }) => id);
    workers.turnOff(lost);
    await evaluateNode(database.store, lost, "UNHEALTHY");
    await allowReaction(database.store, lost);
    await settled(async () => {
      const ready = await executionsOf("moving", READY);
      const elsewhere = ready.filter(({ nodeId }) => nodeId !== lost);
      expect(elsewhere).toHaveLength(3);
    });
    for (const id of there) {
      const { execution } = await rig.jobs.getExecution({ execution: id });
      expect(execution?.replacedById).not.toBe("");
      expect(execution?.state).toBe(ExecutionState.LOST);
    }
    // The node comes back with its executions. One execution per replica index stays.
    await database.store.db
      .updateTable("node_sessions")
      .set({ reaction: null, loss: null, loss_group: null, lost_since: null })
      .where("node_id", "=", lost)
      .execute();
    await connectNode(database.store, lost);
    await evaluateNode(database.store, lost, "HEALTHY");
    workers.turnOn(lost);
    await settled(async () => {
      const all = await executionsOf("moving");
      expect(all.filter(({ state }) => state === ExecutionState.READY)).toHaveLength(3);
      expect(all.filter(({ state }) => state === ExecutionState.REPLACED).map(({ id }) => id)).toEqual(
        expect.arrayContaining(there),
      );
    });
    const running = NODES.flatMap((node) => workers.runningOn(node));
    for (const id of there) expect(running).not.toContain(id);
  });

  it("should stop one execution on request, and start another instead", async () => {
    await rig.jobs.submitJob({ spec: serviceOf("picked", 1) });
    await settled(async () => expect(await executionsOf("picked", READY)).toHaveLength(1));
    const [first] = await executionsOf("picked", READY);
    const id = first?.id ?? "";
    const execution = id.slice(0, 20);
    const refusal = { reason: "EXECUTION_NOT_FOUND", metadata: { execution, suggestion: id } };
    for (const call of [rig.jobs.stopExecution, rig.jobs.adoptExecution, rig.jobs.getExecution]) {
      expect(await refusalOf(call({ execution }))).toMatchObject(refusal);
    }
    expect((await rig.jobs.getExecution({ execution, allowPrefix: true })).execution?.id).toBe(id);
    await rig.jobs.stopExecution({ execution: id, reason: "looks odd" });
    await settled(async () => {
      const [second, ...others] = await executionsOf("picked", READY);
      expect(others).toEqual([]);
      expect(second?.id).not.toBe(id);
      expect(second).toBeDefined();
    });
    await settled(async () => {
      const { execution } = await rig.jobs.getExecution({ execution: id });
      expect(execution).toMatchObject({ state: ExecutionState.STOPPED, reason: "EXECUTION_STOPPED" });
    });
    const { summary } = await rig.jobs.explainExecution({ subject: { case: "execution", value: id } });
    expect(summary).toContain(id);
  });

  it("should show executions that a node runs and the store does not know, and adopt or stop them on request", async () => {
    await rig.jobs.submitJob({ spec: serviceOf("known", 1) });
    await settled(async () => expect(await executionsOf("known", READY)).toHaveLength(1));
    const orphan = (id: string, job: string) => ({
      ...{ id, observed: "RUNNING" as const, startedAtMs: 1, endedAtMs: null, end: null, exitCode: null },
      ...{ signal: null, message: "", job, specDigest: null },
    });
    const ids = ["00000000000000000000orphan1", "00000000000000000000orphan2"];
    const executions = [orphan(ids[0] ?? "", "known"), orphan(ids[1] ?? "", "forgotten")];
    const report = { nodeId: "n4", epoch: 1, number: 100_000, whole: false, executions };
    await saveObservations(database.store, [report]);
    await eventually(async () => {
      expect(await executionsOf("known", [ExecutionState.ORPHANED])).toHaveLength(1);
      expect(await executionsOf("forgotten", [ExecutionState.ORPHANED])).toHaveLength(1);
    });
    expect(await typesOf("forgotten")).toEqual([]);
    expect(await typesOf("cluster")).toContain("job.executions.orphaned");
    await expect(rig.jobs.adoptExecution({ execution: ids[1] ?? "" })).rejects.toThrow("there is no job forgotten");
    await rig.jobs.scaleJob({ name: "known", count: 2 });
    await rig.jobs.adoptExecution({ execution: ids[0] ?? "" });
    await rig.jobs.stopExecution({ execution: ids[1] ?? "" });
    await eventually(async () => {
      const { execution } = await rig.jobs.getExecution({ execution: ids[0] ?? "" });
      expect(execution).toMatchObject({ state: ExecutionState.RUNNING, version: 1 });
      expect(await typesOf("known")).toContain("job.execution.adopted");
      const stopped = await rig.jobs.getExecution({ execution: ids[1] ?? "" });
      expect(stopped.execution?.desired).toBe(2);
    });
  });

  it("should adopt an orphan as the replica of an execution that cannot be used yet, and stop that one", async () => {
    await rig.jobs.submitJob({ spec: serviceOf("full", 1) });
    // From now on, no machine handles its work, so the execution stays pending.
    await eventually(async () => expect(await executionsOf("full", [ExecutionState.PENDING])).toHaveLength(1));
    const [pending] = await executionsOf("full");
    const id = "00000000000000000000orphan3";
    await say(id, "full");
    await eventually(async () => expect(await executionsOf("full", [ExecutionState.ORPHANED])).toHaveLength(1));
    await rig.jobs.adoptExecution({ execution: id });
    await eventually(async () => {
      const { execution } = await rig.jobs.getExecution({ execution: pending?.id ?? "" });
      expect(execution).toMatchObject({ desired: DesiredState.STOP, reason: "DUPLICATE" });
    });
    const { execution } = await rig.jobs.getExecution({ execution: id });
    expect(execution).toMatchObject({ index: 0, desired: DesiredState.RUN, state: ExecutionState.RUNNING });
  });

  it("should adopt nothing for a job that was stopped", async () => {
    await rig.jobs.submitJob({ spec: serviceOf("halted", 1) });
    await rig.jobs.stopJob({ name: "halted" });
    const id = "00000000000000000000orphan4";
    await say(id, "halted");
    await eventually(async () => expect(await executionsOf("halted", [ExecutionState.ORPHANED])).toHaveLength(1));
    const refused = rig.jobs.adoptExecution({ execution: id });
    await expect(refused).rejects.toThrow("job halted is stopped");
    expect(await executionsOf("halted", [ExecutionState.ORPHANED])).toHaveLength(1);
  });
});

/** Report from a node that it runs an execution. */
async function say(id: string, job: string): Promise<void> {
  const facts = { startedAtMs: 1, endedAtMs: null, end: null, exitCode: null, signal: null, message: "" } as const;
  const executions = [{ id, observed: "RUNNING" as const, ...facts, job, specDigest: null }];
  await saveObservations(database.store, [{ nodeId: "n4", epoch: 1, number: 100_000, whole: false, executions }]);
}
