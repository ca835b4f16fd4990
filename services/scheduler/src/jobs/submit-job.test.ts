import { create } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { JobState } from "@rollcall/api/rollcall/scheduler/v1/job_pb";
import { DesiredState, JobSpecSchema, JobType } from "@rollcall/api/rollcall/work/v1/work_pb";
import { describeError } from "@rollcall/errors";
import { readEvents, readSpecs } from "@rollcall/store";
import {
  addWorkNode,
  createTestDatabase,
  evaluateNode,
  eventually,
  saveWorkInfo,
  type TestDatabase,
} from "@rollcall/testkit";
import { type JobInit, serviceOf, tellOf } from "../testing/job-specs.ts";
import { type Rig, startRig } from "../testing/rig.ts";

let database: TestDatabase;
let rig: Rig;
beforeAll(async () => {
  database = await createTestDatabase();
  rig = await startRig(database.store);
});
afterAll(async () => {
  await rig.close();
  await database.drop();
});

const eventsOf = async (subject: string) =>
  (await readEvents(database.store.db, { after: 0n, limit: 1_000, subject })).events.filter(
    ({ type }) => type === "job.submitted" || type === "job.changed",
  );
const refusal = async (call: Promise<unknown>) => describeError(await call.catch((error: unknown) => error));

describe("SubmitJob", () => {
  it("should store a new job with its first version, its spec and one event", async () => {
    const spec = serviceOf("web", 2, { loss: { stopOnAgentAfter: durationFromMs(60_000) } });
    const { job, changed, warnings } = await rig.jobs.submitJob({ spec, reason: "first" });
    expect(changed).toBe(true);
    expect(job).toMatchObject({ version: 1, state: JobState.ACTIVE, wanted: 2, spec: { name: "web", count: 2 } });
    expect(warnings.join()).toContain("when the control plane is unreachable");
    const [event, ...others] = await eventsOf("web");
    expect(others).toEqual([]);
    expect(event).toMatchObject({
      ...{ type: "job.submitted", reason: "JOB_SUBMITTED", message: "first", before: null },
      after: { state: "ACTIVE", version: 1, count: 2, type: "service" },
    });
    const { spec_digest: digest } = await database.store.db
      .selectFrom("jobs")
      .select("spec_digest")
      .where("name", "=", "web")
      .executeTakeFirstOrThrow();
    expect(await readSpecs(database.store.db, [digest])).toHaveLength(1);
  });

  it("should change nothing when the same spec is submitted again", async () => {
    const env = { B: "2", A: "1" };
    const specOf = (vars: Record<string, string>) =>
      serviceOf("same", 1, { task: { case: "process", value: { command: ["true"], env: vars } } });
    await rig.jobs.submitJob({ spec: specOf(env) });
    const again = await rig.jobs.submitJob({ spec: specOf({ A: "1", B: "2" }) });
    expect(again).toMatchObject({ changed: false, job: { version: 1 } });
    expect(await eventsOf("same")).toHaveLength(1);
    const { versions } = await rig.jobs.listJobVersions({ name: "same" });
    expect(versions).toHaveLength(1);
  });

  it("should create a new version for a changed spec, and none for a changed count", async () => {
    await rig.jobs.submitJob({ spec: serviceOf("changing", 1) });
    const scaled = await rig.jobs.submitJob({ spec: serviceOf("changing", 4) });
    expect(scaled).toMatchObject({ changed: true, job: { version: 1, wanted: 4 } });
    const task: JobInit["task"] = { case: "process", value: { command: ["sleep", "1"] } };
    const changed = await rig.jobs.submitJob({ spec: serviceOf("changing", 4, { task }), reason: "faster" });
    expect(changed).toMatchObject({ changed: true, job: { version: 2, wanted: 4 } });
    const { versions } = await rig.jobs.listJobVersions({ name: "changing" });
    expect(versions.map(({ version, reason }) => [version, reason])).toEqual([
      [2, "faster"],
      [1, ""],
    ]);
  });

  it("should run nothing with a count of 0, as ScaleJob does, and one execution without a count", async () => {
    const none = serviceOf("zero", 0);
    const { count: _, ...absent } = none;
    const asked = [
      [none, 0, true],
      [none, 0, false],
      [create(JobSpecSchema, absent), 1, true],
      [none, 0, true],
    ] as const;
    for (const [spec, wanted, changed] of asked) {
      expect(await rig.jobs.planJob({ spec })).toMatchObject({ changed });
      expect(await rig.jobs.submitJob({ spec })).toMatchObject({ changed, job: { wanted, spec: { count: wanted } } });
    }
    expect((await rig.jobs.scaleJob({ name: "zero", count: 0 })).job).toMatchObject({ version: 1, wanted: 0 });
  });

  it("should refuse a higher count if no node could run an execution, unless the job waits for nodes", async () => {
    const huge = { resources: { millicores: 900_000 } };
    const grown = serviceOf("grown", 0, huge);
    delete grown.queueTimeout;
    await rig.jobs.submitJob({ spec: grown });
    const refused = await refusal(rig.jobs.scaleJob({ name: "grown", count: 1 }));
    expect(refused).toMatchObject({ reason: "JOB_FITS_NOWHERE" });
    expect((await rig.jobs.getJob({ name: "grown" })).job).toMatchObject({ wanted: 0 });
    await rig.jobs.submitJob({ spec: serviceOf("patient", 0, { ...huge, queueTimeout: durationFromMs(60_000) }) });
    expect((await rig.jobs.scaleJob({ name: "patient", count: 1 })).job).toMatchObject({ wanted: 1 });
  });

  it("should answer a repeated request id with the first response", async () => {
    const first = await rig.jobs.submitJob({ spec: serviceOf("named", 1), requestId: "r-1" });
    const second = await rig.jobs.submitJob({ spec: serviceOf("named", 1), requestId: "r-1" });
    expect(second).toEqual(first);
    expect(await eventsOf("named")).toHaveLength(1);
  });

  it("should report every violation at once", async () => {
    const spec = create(JobSpecSchema, {
      ...{ name: "no good!", type: JobType.SERVICE, selector: "a in" },
      resources: { ports: [{ label: "HTTP", port: 0 }] },
      maxRunTime: durationFromMs(60_000),
    });
    const { reason, violations } = await refusal(rig.jobs.submitJob({ spec }));
    expect(reason).toBe("INVALID_JOB");
    expect(violations.map(({ field }) => field).sort()).toEqual(
      expect.arrayContaining(["spec.name", "spec.selector", "spec.resources.ports[0].label", "spec.max_run_time"]),
    );
  });

  it("should refuse a job that fits nowhere and does not wait, with a count of each reason", async () => {
    await addWorkNode(database.store, "small", { millicores: 1_000 });
    await addWorkNode(database.store, "docker-only", { millicores: 9_000, executors: ["docker"] });
    const specOf = (millicores: number) => {
      const { queueTimeout: _, ...spec } = serviceOf(`fits-${millicores}`, 1, { resources: { millicores } });
      return create(JobSpecSchema, spec);
    };
    const refused = await refusal(rig.jobs.submitJob({ spec: specOf(2_000) }));
    expect(refused).toMatchObject({
      reason: "JOB_FITS_NOWHERE",
      metadata: { job: "fits-2000", INSUFFICIENT_CORES: "1", EXECUTOR_NOT_OFFERED: "1" },
    });
    expect((await rig.jobs.submitJob({ spec: specOf(1_000) })).changed).toBe(true);
    await addWorkNode(database.store, "large", { millicores: 4_000 });
    await database.store.change(async () => ({
      result: null,
      events: [
        {
          ...{ type: "node.info.changed", subject: "large", actor: "node:large", reason: "AGENT_REPORTED" },
          ...{ message: "", before: null, after: null },
        },
      ],
    }));
    expect((await rig.jobs.submitJob({ spec: specOf(2_000) })).changed).toBe(true);
  });

  it("should accept a job that fits nowhere if its count is 0, and say in its explanation that nothing runs", async () => {
    const { queueTimeout: _, ...spec } = serviceOf("paused", 0, { selector: "size=none" });
    expect((await rig.jobs.submitJob({ spec: create(JobSpecSchema, spec) })).changed).toBe(true);
    const { summary, waits } = await rig.jobs.explainExecution({ subject: { case: "job", value: "paused" } });
    expect(summary).toBe(
      "job paused is active; its count is 0, so nothing runs: `rollcall job scale paused 1` changes that",
    );
    expect(waits).toEqual([]);
    const some = create(JobSpecSchema, { ...spec, count: 1 });
    expect(await refusal(rig.jobs.submitJob({ spec: some }))).toMatchObject({ reason: "JOB_FITS_NOWHERE" });
  });

  it.each([JobType.DAEMON, JobType.OPS])("should refuse a count of 0 for jobs of type %s", async (type) => {
    const spec = create(JobSpecSchema, { ...serviceOf("each-node", 1), type, count: 0 });
    const { reason, violations } = await refusal(rig.jobs.submitJob({ spec }));
    expect(reason).toBe("INVALID_JOB");
    expect(violations.map(({ field }) => field)).toEqual(["spec.count"]);
  });

  it.each([
    ["cpu.usable_millis", "CORES_UNKNOWN"],
    ["memory_bytes", "MEMORY_UNKNOWN"],
    ["disk_bytes", "DISK_UNKNOWN"],
  ])("should place nothing on a node while its %s is unknown, and place it when it is known", async (fact, reason) => {
    const node = `blind-${fact.slice(0, 3)}`;
    const labels = { sight: fact.slice(0, 3) };
    await addWorkNode(database.store, node, { labels, unknownFacts: [fact], workMemoryBytes: 0, workDiskBytes: 0 });
    await tellOf(database.store, node);
    const { queueTimeout: _, ...spec } = serviceOf(node, 1, {
      ...{ selector: `sight=${labels.sight}`, matchAgentLabels: true, resources: {} },
    });
    const submit = () => rig.jobs.submitJob({ spec: create(JobSpecSchema, spec) });
    expect(await refusal(submit())).toMatchObject({ reason: "JOB_FITS_NOWHERE", metadata: { [reason]: "1" } });
    await saveWorkInfo(database.store, node, {});
    await tellOf(database.store, node);
    expect((await submit()).changed).toBe(true);
    const running = async () => (await rig.jobs.listExecutions({ job: node })).executions;
    await eventually(async () => expect(await running()).toHaveLength(1));
    // When a fact becomes unknown, running executions stay, and the job can be submitted again.
    await saveWorkInfo(database.store, node, { unknownFacts: [fact] });
    await tellOf(database.store, node);
    expect((await submit()).changed).toBe(false);
    expect((await running()).map(({ desired, nodeId }) => [desired, nodeId])).toEqual([[DesiredState.RUN, node]]);
  });

  it("should refuse a change that fits nowhere, and a daemon that fits none of the nodes that match it", async () => {
    await addWorkNode(database.store, "fitting", { labels: { size: "s" }, millicores: 1_000 });
    const init = (millicores: number, rest: JobInit = {}) => {
      const { queueTimeout: _, ...spec } = serviceOf("grows", 1, {
        ...{ selector: "size=s", matchAgentLabels: true, resources: { millicores } },
        ...rest,
      });
      return create(JobSpecSchema, spec);
    };
    await tellOf(database.store, "fitting");
    await rig.jobs.submitJob({ spec: init(1_000) });
    expect(await refusal(rig.jobs.submitJob({ spec: init(5_000) }))).toMatchObject({ reason: "JOB_FITS_NOWHERE" });
    const daemon = (millicores: number, selector: string) =>
      init(millicores, { name: "each", type: JobType.DAEMON, selector });
    expect(await refusal(rig.jobs.submitJob({ spec: daemon(5_000, "size=s") }))).toMatchObject({
      reason: "JOB_FITS_NOWHERE",
    });
    expect((await rig.jobs.submitJob({ spec: daemon(5_000, "size=none") })).changed).toBe(true);
    // A running job can be submitted again while its nodes are unhealthy.
    await evaluateNode(database.store, "fitting", "UNHEALTHY");
    await tellOf(database.store, "fitting");
    expect((await rig.jobs.submitJob({ spec: init(1_000) })).changed).toBe(false);
    expect((await rig.jobs.submitJob({ spec: init(1_000, { count: 2 }) })).changed).toBe(true);
  });

  it("should refuse a job that has changed since the caller saw it", async () => {
    const { job } = await rig.jobs.submitJob({ spec: serviceOf("tagged", 1) });
    await rig.jobs.scaleJob({ name: "tagged", count: 2 });
    const etag = job?.etag ?? "";
    expect(await refusal(rig.jobs.submitJob({ spec: serviceOf("tagged", 3), etag }))).toMatchObject({
      reason: "ETAG_MISMATCH",
    });
    expect(await refusal(rig.jobs.submitJob({ spec: serviceOf("untagged", 3), etag }))).toMatchObject({
      reason: "ETAG_MISMATCH",
    });
  });

  it("should serialize two simultaneous submissions", async () => {
    const results = await Promise.all(
      Array.from({ length: 8 }, () => rig.jobs.submitJob({ spec: serviceOf("at-once", 1) })),
    );
    expect(results.filter(({ changed }) => changed)).toHaveLength(1);
    expect(await eventsOf("at-once")).toHaveLength(1);
  });

  it("should be allowed only for submitters and admins", async () => {
    for (const role of ["viewer", "operator"]) {
      const jobs = await rig.client(role);
      expect(await refusal(jobs.submitJob({ spec: serviceOf("role", 1) }))).toMatchObject({ reason: "ROLE_TOO_LOW" });
      expect((await jobs.listJobs({ pageSize: 1 })).jobs).toHaveLength(1);
    }
    const admin = await rig.client("admin");
    expect((await admin.submitJob({ spec: serviceOf("role", 1) })).changed).toBe(true);
  });
});

describe("ScaleJob, RestartJob and StopJob", () => {
  it("should change a job with one event each, and restart a stopped one", async () => {
    await rig.jobs.submitJob({ spec: serviceOf("turned", 1) });
    const { job: scaled } = await rig.jobs.scaleJob({ name: "turned", count: 3, reason: "more" });
    expect(scaled).toMatchObject({ version: 1, wanted: 3, spec: { count: 3 } });
    await rig.jobs.scaleJob({ name: "turned", count: 3 });
    await rig.jobs.restartJob({ name: "turned" });
    const { job: stopped } = await rig.jobs.stopJob({ name: "turned" });
    expect(stopped).toMatchObject({ state: JobState.STOPPED, wanted: 0 });
    for (const call of [
      rig.jobs.stopJob({ name: "turned" }),
      rig.jobs.scaleJob({ name: "turned", count: 1 }),
      rig.jobs.restartJob({ name: "turned" }),
    ]) {
      expect(await refusal(call)).toMatchObject({ reason: "JOB_STOPPED" });
    }
    const again = await rig.jobs.submitJob({ spec: serviceOf("turned", 3) });
    expect(again).toMatchObject({ changed: true, job: { state: JobState.ACTIVE, version: 1 } });
    expect((await eventsOf("turned")).map(({ reason }) => reason)).toEqual([
      ...["JOB_SUBMITTED", "JOB_SCALED", "JOB_RESTARTED", "JOB_STOPPED", "JOB_SUBMITTED"],
    ]);
  });

  it("should explain a job without the history of a deleted job that had its name", async () => {
    const subject = { case: "job", value: "again" } as const;
    const historyOf = async () => (await rig.jobs.explainExecution({ subject })).history.map(({ text }) => text);
    await rig.jobs.submitJob({ spec: serviceOf("again", 0), reason: "first" });
    await rig.jobs.stopJob({ name: "again", reason: "over" });
    expect(await historyOf()).toHaveLength(2);
    await rig.jobs.deleteJob({ name: "again" });
    await rig.jobs.submitJob({ spec: serviceOf("again", 0), reason: "second" });
    expect(await historyOf()).toEqual([expect.stringContaining("second")]);
  });

  it("should refuse a missing job, and a count for a job without one", async () => {
    const daemon = serviceOf("daemon", 0, { type: JobType.DAEMON });
    await rig.jobs.submitJob({ spec: daemon });
    expect(await refusal(rig.jobs.scaleJob({ name: "daemon", count: 1 }))).toMatchObject({
      reason: "JOB_HAS_NO_COUNT",
    });
    for (const call of [
      rig.jobs.stopJob({ name: "none" }),
      rig.jobs.getJob({ name: "none" }),
      rig.jobs.listJobVersions({ name: "none" }),
      rig.jobs.explainExecution({ subject: { case: "job", value: "none" } }),
    ]) {
      expect(await refusal(call)).toMatchObject({ reason: "JOB_NOT_FOUND" });
    }
    expect(await refusal(rig.jobs.getExecution({ execution: "00000000" }))).toMatchObject({
      reason: "EXECUTION_NOT_FOUND",
    });
  });
});

describe("ListJobs", () => {
  it("should page by name, and filter", async () => {
    for (const name of ["list-a", "list-b", "list-c"]) await rig.jobs.submitJob({ spec: serviceOf(name, 1) });
    await rig.jobs.stopJob({ name: "list-b" });
    const seen: string[] = [];
    let pageToken = "";
    do {
      const page = await rig.jobs.listJobs({ pageSize: 2, pageToken, states: [JobState.ACTIVE] });
      expect(page.jobs.length).toBeLessThanOrEqual(2);
      seen.push(...page.jobs.map(({ spec }) => spec?.name ?? ""));
      pageToken = page.nextPageToken;
    } while (pageToken !== "");
    expect(seen).toEqual([...seen].sort());
    expect(seen.filter((name) => name.startsWith("list-"))).toEqual(["list-a", "list-c"]);
    const { jobs } = await rig.jobs.listJobs({ types: [JobType.OPS] });
    expect(jobs).toEqual([]);
  });
});
