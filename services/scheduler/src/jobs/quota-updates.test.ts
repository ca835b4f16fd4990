import { durationFromMs } from "@bufbuild/protobuf/wkt";
import type { Client } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import type { JobService } from "@rollcall/api/rollcall/scheduler/v1/job_pb";
import { addWorkNode, createTestDatabase, eventually, refusalOf, type TestDatabase } from "@rollcall/testkit";
import { FakeWorkers, type Fate } from "../testing/fake-workers.ts";
import { type JobInit, serviceOf } from "../testing/job-specs.ts";
import { type Rig, startRig } from "../testing/rig.ts";

const NODES = ["n1", "n2", "n3"];

let database: TestDatabase;
let rig: Rig;
let workers: FakeWorkers;
beforeAll(async () => {
  database = await createTestDatabase();
  for (const id of NODES) await addWorkNode(database.store, id);
  workers = new FakeWorkers(database.store);
  rig = await startRig(database.store, { quota: { jobs: 4, executions: 20, millicores: 10_000 } });
  await eventually(async () => expect(await rig.leads()).toBe(true));
});
afterAll(async () => {
  await rig.close();
  await database.drop();
});

function specOf(name: string, count: number, millicores: number, rest: JobInit = {}) {
  return serviceOf(name, count, {
    ...rest,
    resources: { millicores },
    update: { minReadyTime: durationFromMs(0), ...rest.update },
  });
}

/** The fate of executions, keyed by version; 0 stands for an unknown version. */
const FATES: Readonly<Record<number, Fate>> = { 0: "IS_NOT_REPORTED", 2: "FAILS" };

/** Let the nodes work until an assertion holds. Executions of a job's version 2 fail. */
async function settled(name: string, assertion: () => Promise<void>): Promise<void> {
  await eventually(async () => {
    const { executions } = await rig.jobs.listExecutions({ job: name, pageSize: 1_000 });
    const versions = new Map(executions.map(({ id, version }) => [id, version]));
    // Executions placed after the list was read wait for the next try, because their version is not known.
    workers.fate = (id) => FATES[versions.get(id) ?? 0] ?? "RUNS";
    await workers.work(NODES);
    await assertion();
  });
}

/** Submit a service and wait until it is ready. */
async function ready(jobs: Client<typeof JobService>, spec: ReturnType<typeof specOf>): Promise<void> {
  await jobs.submitJob({ spec });
  await settled(spec.name, async () => {
    expect((await jobs.getJob({ name: spec.name })).job).toMatchObject({ readyVersion: 1 });
  });
}

describe("quotas of owners and updates", () => {
  it("should count the version that is placed while the newest one is halted", async () => {
    const jobs = await rig.client("submitter");
    await ready(jobs, specOf("halted", 2, 3_000));
    await jobs.submitJob({ spec: specOf("halted", 2, 1) });
    await settled("halted", async () => {
      expect((await jobs.getJob({ name: "halted" })).job).toMatchObject({ version: 2, update: { halted: true } });
    });
    // The resources of the failed version count until the leader has stored the version's end.
    expect(await refusalOf(jobs.scaleJob({ name: "halted", count: 4 }))).toMatchObject({
      reason: "QUOTA_EXCEEDED",
      metadata: { quota: "cores", used: expect.stringMatching(/^6(\.00\d)?$/), wanted: "12" },
    });
    await jobs.stopJob({ name: "halted" });
    await settled("halted", async () => {
      await jobs.deleteJob({ name: "halted" });
    });
  });

  it("should count a job that is stopped until its executions have ended", async () => {
    const jobs = await rig.client("submitter");
    await ready(jobs, specOf("stopping", 15, 100));
    await jobs.stopJob({ name: "stopping" });
    expect(await refusalOf(jobs.submitJob({ spec: specOf("after", 6, 100) }))).toMatchObject({
      reason: "QUOTA_EXCEEDED",
      metadata: { quota: "executions", used: "15", wanted: "21" },
    });
    await settled("stopping", async () => {
      await jobs.submitJob({ spec: specOf("after", 6, 100) });
    });
    await jobs.stopJob({ name: "after" });
  });

  it("should not be exceeded by a job that is reverted automatically", async () => {
    const jobs = await rig.client("submitter");
    const update = { autoRevert: true };
    await ready(jobs, specOf("shrunk", 15, 100, { update }));
    await jobs.submitJob({ spec: specOf("shrunk", 1, 10, { update }) });
    // The leader may already have placed the first execution of the new version, which counts as well.
    expect(await refusalOf(jobs.submitJob({ spec: specOf("other", 6, 100) }))).toMatchObject({
      reason: "QUOTA_EXCEEDED",
      metadata: { quota: "executions", wanted: expect.stringMatching(/^2[12]$/) },
    });
    await settled("shrunk", async () => {
      expect((await jobs.getJob({ name: "shrunk" })).job).toMatchObject({ undoneVersion: 2, spec: { count: 15 } });
    });
    await jobs.stopJob({ name: "shrunk" });
  });

  it("should keep a job halted that would revert to another owner's version beyond that owner's quota", async () => {
    const [first, second] = [await rig.client("submitter"), await rig.client("submitter")];
    const update = { autoRevert: true };
    await ready(first, specOf("taken", 15, 100, { update }));
    await second.submitJob({ spec: specOf("taken", 1, 10, { update }) });
    await first.submitJob({ spec: specOf("filler", 10, 0) });
    await settled("taken", async () => {
      expect((await first.getJob({ name: "taken" })).job?.update?.message).toMatch(
        /failed.*; it cannot be reverted automatically: .* use 10 of 20 executions and would use 25/,
      );
    });
    expect((await first.getJob({ name: "taken" })).job).toMatchObject({ version: 2, spec: { count: 1 } });
    const { waits } = await first.explainExecution({ subject: { case: "job", value: "taken" } });
    expect(waits.map(({ text }) => text).join()).toContain("it cannot be reverted automatically");
    await first.stopJob({ name: "filler" });
  });

  it("should limit reverts by submitters, and count them for the owner of the version", async () => {
    const [first, second] = [await rig.client("submitter"), await rig.client("submitter")];
    const admin = await rig.client("admin");
    const waiting = { queueTimeout: { seconds: 3_600n } };
    await first.submitJob({ spec: specOf("reverted", 5, 1_000, waiting) });
    await second.submitJob({ spec: specOf("reverted", 1, 10, waiting) });
    await first.submitJob({ spec: specOf("filling", 1, 9_000, waiting) });
    // Both callers are refused, because the revert would count the cores for the first caller again.
    for (const client of [first, second]) {
      expect(await refusalOf(client.revertJob({ name: "reverted", version: 1 }))).toMatchObject({
        reason: "QUOTA_EXCEEDED",
        metadata: { quota: "cores", used: "9" },
      });
    }
    expect((await first.getJob({ name: "reverted" })).job).toMatchObject({ version: 2 });
    await admin.revertJob({ name: "reverted", version: 1 });
    expect((await first.getJob({ name: "reverted" })).job).toMatchObject({ version: 3 });
    for (const name of ["reverted", "filling"]) await admin.stopJob({ name });
  });
});
