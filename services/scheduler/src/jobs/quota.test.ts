import type { Client } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { ErrorReason } from "@rollcall/api/rollcall/node/v1/error_reason_pb";
import type { JobService } from "@rollcall/api/rollcall/scheduler/v1/job_pb";
import { JobType } from "@rollcall/api/rollcall/work/v1/work_pb";
import { describeError } from "@rollcall/errors";
import { addWorkNode, createTestDatabase, eventually, type TestDatabase } from "@rollcall/testkit";
import { FakeWorkers } from "../testing/fake-workers.ts";
import { serviceOf } from "../testing/job-specs.ts";
import { createToken, type Rig, startRig } from "../testing/rig.ts";

const QUOTA = { jobs: 4, executions: 20, millicores: 10_000 };
const WAITING = { queueTimeout: { seconds: 3_600n } };

const NODES = ["n1", "n2", "n3"];

let database: TestDatabase;
let workers: FakeWorkers;
let rig: Rig;
let second: Rig;
let admin: Client<typeof JobService>;
beforeAll(async () => {
  database = await createTestDatabase();
  for (const id of NODES) await addWorkNode(database.store, id);
  workers = new FakeWorkers(database.store);
  rig = await startRig(database.store, { quota: QUOTA });
  // Start a second scheduler, because parallel schedulers share only the store.
  second = await startRig(database.store, { quota: QUOTA });
  admin = await rig.client("admin");
});
afterAll(async () => {
  await rig.close();
  await second.close();
  await database.drop();
});

const specOf = (name: string, count: number, millicores = 0) =>
  serviceOf(name, count, { ...WAITING, resources: { millicores } });

const owners = async () => (await admin.listOwners({})).owners;

describe("quotas of owners", () => {
  it("should limit the calls of submitters, and be refused with the numbers", async () => {
    const jobs = await rig.client("submitter");
    await jobs.submitJob({ spec: specOf("a", 15, 500) });
    const [{ owner } = { owner: "" }] = await owners();
    const refusedFor = async (spec: ReturnType<typeof specOf>) => {
      const refused = describeError(await jobs.submitJob({ spec }).catch((error: unknown) => error));
      const { refusal } = await jobs.planJob({ spec });
      expect(refusal).toMatchObject({ reason: ErrorReason.QUOTA_EXCEEDED, message: refused.message });
      return refused;
    };
    const executions = { owner, quota: "executions", limit: "20", used: "15", wanted: "21" };
    expect(await refusedFor(specOf("b", 6))).toMatchObject({
      ...{ code: 8, reason: "QUOTA_EXCEEDED", metadata: executions },
      message: expect.stringContaining("use 15 of 20 executions and would use 21"),
    });
    const cores = { owner, quota: "cores", limit: "10", used: "7.5", wanted: "10.5" };
    expect(await refusedFor(specOf("b", 1, 3_000))).toMatchObject({ reason: "QUOTA_EXCEEDED", metadata: cores });
    for (const name of ["b", "c", "d"]) await jobs.submitJob({ spec: specOf(name, 1) });
    const number = { owner, quota: "jobs", limit: "4", used: "4", wanted: "5" };
    expect(await refusedFor(specOf("e", 1))).toMatchObject({ reason: "QUOTA_EXCEEDED", metadata: number });
    const scaled = describeError(await jobs.scaleJob({ name: "a", count: 18 }).catch((error: unknown) => error));
    expect(scaled).toMatchObject({ reason: "QUOTA_EXCEEDED", metadata: { used: "18", wanted: "21" } });
    expect((await jobs.getJob({ name: "a" })).job?.spec?.count).toBe(15);
    // A change that uses less, or changes nothing, is never refused.
    await jobs.scaleJob({ name: "a", count: 10 });
    expect((await jobs.submitJob({ spec: specOf("b", 1) })).changed).toBe(false);
    await jobs.stopJob({ name: "a" });
    await eventually(async () => {
      await workers.work(NODES);
      expect(await owners()).toMatchObject([{ owner, jobs: 4, executions: 3n, millicores: 0n }]);
    });
    await jobs.submitJob({ spec: specOf("b", 17, 500) });
    const again = describeError(await jobs.submitJob({ spec: specOf("a", 10, 500) }).catch((error: unknown) => error));
    expect(again).toMatchObject({ reason: "QUOTA_EXCEEDED" });
    expect(await jobs.getJob({ name: "a" })).toMatchObject({ job: { version: 1 } });
  });

  it("should not be exceeded by simultaneous submissions to several processes", async () => {
    const token = await createToken(database.store, "submitter");
    const [jobs, elsewhere] = [rig.clientWith(token), second.clientWith(token)];
    const calls = Array.from({ length: 40 }, (_, index) => {
      const client = index % 2 === 0 ? jobs : elsewhere;
      return client.submitJob({ spec: specOf(`rush-${index}`, 6) }).then(
        () => "accepted",
        (error: unknown) => describeError(error).reason,
      );
    });
    const results = await Promise.all(calls);
    expect(results.filter((result) => result === "accepted")).toHaveLength(3);
    expect(new Set(results)).toEqual(new Set(["accepted", "QUOTA_EXCEEDED"]));
    const rushed = (await owners()).filter(({ executions }) => executions === 18n);
    expect(rushed).toHaveLength(1);
    expect((await admin.listJobs({})).jobs.filter(({ spec }) => spec?.name.startsWith("rush-"))).toHaveLength(3);
  });

  it("should count an ops job or daemon on each approved node, or once where it names its node", async () => {
    const jobs = await rig.client("submitter");
    const daemon = (name: string, constraints = {}) =>
      serviceOf(name, 0, { ...WAITING, type: JobType.DAEMON, constraints, resources: { millicores: 3_000 } });
    await jobs.submitJob({ spec: daemon("everywhere") });
    const usage = (await owners()).find(({ millicores }) => millicores === 9_000n);
    expect(usage).toMatchObject({ jobs: 1, executions: 3n });
    const refused = await jobs.submitJob({ spec: daemon("more", { node: "n1" }) }).catch((error: unknown) => error);
    expect(describeError(refused)).toMatchObject({ reason: "QUOTA_EXCEEDED", metadata: { wanted: "12" } });
  });

  it("should not limit an admin, but limit a submitter who changes another's jobs", async () => {
    await admin.submitJob({ spec: specOf("large", 500) });
    const jobs = await rig.client("submitter");
    const refused = await jobs.scaleJob({ name: "large", count: 501 }).catch((error: unknown) => error);
    expect(describeError(refused)).toMatchObject({ reason: "QUOTA_EXCEEDED", metadata: { used: "500" } });
    await jobs.scaleJob({ name: "large", count: 499 });
  });

  it("should be shown to admins, in pages", async () => {
    const first = await admin.listOwners({ pageSize: 1 });
    expect(first.quota).toMatchObject({ jobs: 4, executions: 20n, millicores: 10_000n });
    const next = await admin.listOwners({ pageSize: 100, pageToken: first.nextPageToken });
    expect([...first.owners, ...next.owners]).toEqual(await owners());
    const refused = await rig.jobs.listOwners({}).catch((error: unknown) => error);
    expect(describeError(refused).reason).toBe("ROLE_TOO_LOW");
  });
});
