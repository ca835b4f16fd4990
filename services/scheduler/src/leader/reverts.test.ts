import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { ExecutionState } from "@rollcall/api/rollcall/scheduler/v1/job_pb";
import { readEvents } from "@rollcall/store";
import { addWorkNode, createTestDatabase, eventually, refusalOf, type TestDatabase } from "@rollcall/testkit";
import { FakeWorkers } from "../testing/fake-workers.ts";
import { type JobInit, serviceOf } from "../testing/job-specs.ts";
import { type Rig, startRig } from "../testing/rig.ts";

const NODES = ["n1", "n2"];

let database: TestDatabase;
let rig: Rig;
let workers: FakeWorkers;
beforeAll(async () => {
  database = await createTestDatabase();
  for (const id of NODES) await addWorkNode(database.store, id);
  workers = new FakeWorkers(database.store);
  rig = await startRig(database.store);
  await eventually(async () => expect(await rig.leads()).toBe(true));
});
afterAll(async () => {
  await rig.close();
  await database.drop();
});

/** Executions of this version of a job fail; all others succeed. */
let failing: { readonly job: string; readonly version: number } | null = null;

async function settled(assertion: () => Promise<void>): Promise<void> {
  await eventually(async () => {
    const { executions } = await rig.jobs.listExecutions({ job: failing?.job ?? "", pageSize: 1_000 });
    const versions = new Map(executions.map(({ id, version }) => [id, version]));
    workers.fate = (id) => (failing !== null && versions.get(id) === failing.version ? "FAILS" : "RUNS");
    await workers.work(NODES);
    await assertion();
  });
}

async function jobOf(name: string) {
  const { job } = await rig.jobs.getJob({ name });
  if (job === undefined) throw new Error(`there is no job ${name}`);
  return job;
}

/** Return the versions of the executions that are ready. */
async function readyOf(job: string): Promise<readonly number[]> {
  const { executions } = await rig.jobs.listExecutions({ job, states: [ExecutionState.READY], pageSize: 100 });
  return executions.map(({ version }) => version).sort();
}

function specOf(name: string, count: number, text: string, rest: JobInit = {}) {
  const update = { minReadyTime: durationFromMs(0), ...rest.update };
  const task = { case: "process" as const, value: { command: ["sleep", text] } };
  return serviceOf(name, count, { ...rest, task, update });
}

/** Submit a service that becomes ready, then a version of it that fails. */
async function halt(name: string, count: number, update: JobInit["update"] = {}): Promise<void> {
  failing = { job: name, version: 2 };
  await rig.jobs.submitJob({ spec: specOf(name, count, "1", { update }) });
  await settled(async () => expect(await jobOf(name)).toMatchObject({ readyVersion: 1 }));
  await rig.jobs.submitJob({ spec: specOf(name, count, "2", { update }) });
}

async function events(name: string) {
  return (await readEvents(database.store.db, { after: 0n, limit: 1_000, subject: name })).events;
}

describe("an update that halts", () => {
  it("should place no more of the failed version, and revert on request", async () => {
    await halt("web", 2);
    await settled(async () => {
      expect(await jobOf("web")).toMatchObject({ version: 2, readyVersion: 1, update: { halted: true } });
      expect(await readyOf("web")).toEqual([1, 1]);
    });
    await rig.jobs.scaleJob({ name: "web", count: 4 });
    await settled(async () => expect(await readyOf("web")).toEqual([1, 1, 1, 1]));
    const before = await jobOf("web");
    expect(await refusalOf(rig.jobs.restartJob({ name: "web" }))).toMatchObject({
      reason: "JOB_UPDATE_HALTED",
      metadata: { job: "web", version: "2", readyVersion: "1" },
    });
    expect(await jobOf("web")).toMatchObject({ run: before.run, update: { halted: true } });
    const { job, revertedTo } = await rig.jobs.revertJob({ name: "web", reason: "it fails" });
    expect({ version: job?.version, revertedTo, same: job?.sameVersions }).toEqual({
      version: 3,
      revertedTo: 1,
      same: [1],
    });
    await settled(async () => {
      expect(await jobOf("web")).toMatchObject({ version: 3, readyVersion: 3, message: "", executions: { ready: 4 } });
    });
    expect((await jobOf("web")).update).toBeUndefined();
    // The executions are not replaced, because they already run the spec that the job has again.
    expect(await readyOf("web")).toEqual([1, 1, 1, 1]);
    expect((await rig.jobs.restartJob({ name: "web" })).job?.run).toBe(before.run + 1);
    const { versions } = await rig.jobs.listJobVersions({ name: "web" });
    expect(versions).toMatchObject([
      { version: 3, origin: 1, reason: expect.stringMatching(/^reverted to version 1 by token:\S+: it fails$/) },
      { version: 2, origin: 2 },
      { version: 1, origin: 1 },
    ]);
    expect(versions.map(({ readyTime }) => readyTime !== undefined)).toEqual([true, false, true]);
    expect(await events("web")).toContainEqual(
      expect.objectContaining({ reason: "JOB_REVERTED", message: versions[0]?.reason }),
    );
  });

  it("should revert automatically once if the policy says so, and not between two failing versions", async () => {
    await halt("auto", 1, { autoRevert: true });
    await settled(async () => {
      expect(await jobOf("auto")).toMatchObject({ version: 3, readyVersion: 3, undoneVersion: 2 });
      expect(await readyOf("auto")).toHaveLength(1);
    });
    const [reverted] = (await rig.jobs.listJobVersions({ name: "auto" })).versions;
    expect(reverted?.reason).toMatch(
      /^reverted to version 1 by scheduler:\S+: the update to version 2 halted: execution .* failed/,
    );
    // The specification keeps its original submitter, and with it the secrets that it can use.
    expect(reverted?.actor).toMatch(/^token:/);
    // From now on everything fails: version 4 is reverted by version 5, which halts as well and stays.
    await rig.jobs.submitJob({ spec: specOf("auto", 1, "4", { update: { autoRevert: true } }) });
    await eventually(async () => {
      workers.fate = () => "FAILS";
      await workers.work(NODES);
      expect(await jobOf("auto")).toMatchObject({ version: 5, undoneVersion: 4, update: { halted: true } });
    });
    expect((await events("auto")).filter(({ reason }) => reason === "JOB_REVERTED")).toHaveLength(2);
  });

  it("should be reverted by the next leader, too", async () => {
    await halt("inherited", 1, { autoRevert: true });
    await rig.close();
    // Set the halt in the store, as if the update had halted while no scheduler led.
    await database.store.db
      .updateTable("jobs")
      .set({ halted: "it failed" })
      .where("name", "=", "inherited")
      .where("version", "=", 2)
      .execute();
    rig = await startRig(database.store);
    await settled(async () => expect(await jobOf("inherited")).toMatchObject({ version: 3, undoneVersion: 2 }));
  });
});

describe("an update with a surge", () => {
  it("should run the old executions until the new ones are ready, and never fewer than are wanted", async () => {
    failing = null;
    const update = { maxSurge: 1 };
    await rig.jobs.submitJob({ spec: specOf("surging", 2, "1", { update }) });
    await settled(async () => expect(await jobOf("surging")).toMatchObject({ readyVersion: 1 }));
    const readyAtOnce: number[] = [];
    await rig.jobs.submitJob({ spec: specOf("surging", 2, "2", { update }) });
    await settled(async () => {
      readyAtOnce.push((await readyOf("surging")).length);
      expect(await jobOf("surging")).toMatchObject({ version: 2, readyVersion: 2 });
    });
    expect(Math.min(...readyAtOnce)).toBeGreaterThanOrEqual(2);
    await settled(async () => expect(await readyOf("surging")).toEqual([2, 2]));
  });
});

describe("an update with a surge that fails", () => {
  it("should show in the history that the replaced execution stays", async () => {
    await halt("kept", 1, { maxSurge: 1 });
    await settled(async () => {
      expect(await jobOf("kept")).toMatchObject({ update: { halted: true } });
      expect(await readyOf("kept")).toEqual([1]);
    });
    const { executions } = await rig.jobs.listExecutions({ job: "kept", states: [ExecutionState.READY] });
    const [{ id = "" } = {}] = executions;
    const isAbout = ({ after }: { readonly after: unknown }) =>
      (after as { readonly execution?: string } | null)?.execution === id;
    const told = (await events("kept")).filter(isAbout);
    expect(told.map(({ type, reason }) => `${type} ${reason}`)).toEqual([
      "job.execution.replaced JOB_UPDATED",
      "job.execution.restored EXECUTION_RESTORED",
    ]);
    const replacements = told.map(({ after }) => (after as { readonly replacedBy?: string }).replacedBy);
    expect(told[1]?.message).toBe(`kept instead of ${replacements[0]}`);
    const why = await rig.jobs.explainExecution({ subject: { case: "execution", value: id } });
    expect(why.history.at(-1)?.text).toContain("execution restored");
  });
});

describe("RevertJob()", () => {
  it("should refuse invalid target versions, and name the available ones", async () => {
    failing = null;
    await rig.jobs.submitJob({ spec: specOf("once", 1, "1") });
    const refused = async (request: Parameters<Rig["jobs"]["revertJob"]>[0]) => refusalOf(rig.jobs.revertJob(request));
    expect(await refused({ name: "nothing" })).toMatchObject({ reason: "JOB_NOT_FOUND" });
    expect(await refused({ name: "once" })).toMatchObject({ reason: "JOB_VERSION_NOT_FOUND" });
    expect(await refused({ name: "once", version: 7 })).toMatchObject({
      reason: "JOB_VERSION_NOT_FOUND",
      message: expect.stringContaining("has no version 7; it has 1"),
    });
    expect(await refused({ name: "once", version: 1 })).toMatchObject({ reason: "JOB_VERSION_IS_NEWEST" });
    expect(await refused({ name: "once", version: 1, etag: "other" })).toMatchObject({ reason: "ETAG_MISMATCH" });
    await rig.jobs.stopJob({ name: "once" });
    expect(await refused({ name: "once", version: 1 })).toMatchObject({ reason: "JOB_STOPPED" });
  });

  it("should answer a repeated request with the same response, and revert once", async () => {
    await rig.jobs.submitJob({ spec: specOf("twice", 1, "1") });
    await rig.jobs.submitJob({ spec: specOf("twice", 1, "2") });
    const request = { name: "twice", version: 1, requestId: "again" };
    const [first, second] = [await rig.jobs.revertJob(request), await rig.jobs.revertJob(request)];
    expect(second).toEqual(first);
    expect((await jobOf("twice")).version).toBe(3);
  });

  it("should keep the count that the job was scaled to, and otherwise use the version's", async () => {
    await rig.jobs.submitJob({ spec: specOf("counted", 1, "1") });
    await rig.jobs.submitJob({ spec: specOf("counted", 3, "2") });
    expect((await rig.jobs.revertJob({ name: "counted", version: 1 })).job?.spec?.count).toBe(1);
    await rig.jobs.scaleJob({ name: "counted", count: 2 });
    expect((await rig.jobs.revertJob({ name: "counted", version: 2 })).job?.spec?.count).toBe(2);
  });
});

describe("DeleteJob()", () => {
  it("should delete an ended job, and notify watchers", async () => {
    failing = null;
    await rig.jobs.submitJob({ spec: specOf("doomed", 2, "1") });
    await settled(async () => expect(await readyOf("doomed")).toHaveLength(2));
    const watching = new AbortController();
    const deleted = deletedIn(rig, watching.signal);
    expect(await refusalOf(rig.jobs.deleteJob({ name: "doomed" }))).toMatchObject({ reason: "JOB_ACTIVE" });
    await rig.jobs.stopJob({ name: "doomed" });
    expect(await refusalOf(rig.jobs.deleteJob({ name: "doomed" }))).toMatchObject({ reason: "JOB_NOT_ENDED" });
    await settled(async () => {
      const { job } = await rig.jobs.deleteJob({ name: "doomed", reason: "over" });
      expect(job).toMatchObject({ version: 1 });
    });
    expect(await deleted).toEqual(["doomed"]);
    watching.abort();
    expect(await refusalOf(rig.jobs.getJob({ name: "doomed" }))).toMatchObject({ reason: "JOB_NOT_FOUND" });
    expect((await rig.jobs.listExecutions({ job: "doomed" })).executions).toEqual([]);
    expect((await events("doomed")).at(-1)).toMatchObject({ type: "job.deleted", message: "over", after: null });
    // A new job with the same name does not inherit the history of the deleted one.
    await rig.jobs.submitJob({ spec: specOf("doomed", 1, "1") });
    await settled(async () =>
      expect(await jobOf("doomed")).toMatchObject({ version: 1, run: 1, executions: { ready: 1 } }),
    );
  });
});

async function deletedIn({ jobs }: Rig, signal: AbortSignal): Promise<readonly string[]> {
  for await (const { deletedJobs } of jobs.watchJobs({}, { signal })) if (deletedJobs.length > 0) return deletedJobs;
  return [];
}
