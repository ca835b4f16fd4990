import { durationFromMs, timestampMs } from "@bufbuild/protobuf/wkt";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { JobType } from "@rollcall/api/rollcall/work/v1/work_pb";
import { stateWords } from "@rollcall/domain";
import { addWorkNode, createTestDatabase, eventually, type TestDatabase } from "@rollcall/testkit";
import { FakeWorkers } from "../testing/fake-workers.ts";
import { serviceOf, tellOf } from "../testing/job-specs.ts";
import { Operators } from "../testing/operators.ts";
import { type Rig, startRig } from "../testing/rig.ts";

const NODES = ["n1", "n2"];

let database: TestDatabase;
let rig: Rig;
let workers: FakeWorkers;
beforeAll(async () => {
  database = await createTestDatabase();
  workers = new FakeWorkers(database.store);
  for (const id of NODES) await addWorkNode(database.store, id);
  rig = await startRig(database.store, { timing: { pollMs: 100 } });
  await eventually(async () => expect(await rig.leads()).toBe(true));
});
afterAll(async () => {
  await rig.close();
  await database.drop();
});

/** More than half of a node. */
const LARGE = { resources: { millicores: 2_100 } };

/** Reasons of executions that have a node. */
const PLACED: ReadonlySet<string> = new Set(["STOPPING", "NOT_STARTED", "NOT_READY"]);

/** A service that has 40 s to stop. */
const slow = (name: string, part: Parameters<typeof serviceOf>[2] = {}) => {
  const stop = { grace: durationFromMs(40_000) };
  const task = { case: "process" as const, value: { command: ["sleep", "infinity"], stop } };
  return serviceOf(name, 1, { task, ...part });
};

async function executionOf(job: string): Promise<string> {
  const { executions } = await rig.jobs.listExecutions({ job });
  return executions[0]?.id ?? "";
}

/** Calls that order the executions of a job to stop, keyed by the reason that the executions then wait for. */
const ORDERS: Readonly<Record<string, (job: string) => Promise<unknown>>> = {
  SCALED_DOWN: (name) => rig.jobs.scaleJob({ name, count: 0 }),
  EXECUTION_STOPPED: async (name) => rig.jobs.stopExecution({ execution: await executionOf(name) }),
  JOB_RESTARTED: (name) => rig.jobs.restartJob({ name }),
  JOB_UPDATED: (name) => rig.jobs.submitJob({ spec: slow(name, { resources: { millicores: 300 } }) }),
  JOB_STOPPED: (name) => rig.jobs.stopJob({ name }),
  "JOB_STOPPED, and the job was submitted again": async (name) => {
    await rig.jobs.stopJob({ name });
    await eventually(async () => {
      const { summary } = await rig.jobs.explainExecution({
        subject: { case: "execution", value: await executionOf(name) },
      });
      expect(summary).toContain("job stopped");
    });
    await rig.jobs.submitJob({ spec: slow(name) });
  },
};

describe("ExplainExecution", () => {
  it.each(Object.keys(ORDERS))(
    "should say since when executions stop, and when they are killed, after %s",
    async (why) => {
      const name = why.toLowerCase().replaceAll(/[^a-z]+/g, "-");
      await rig.jobs.submitJob({ spec: slow(name) });
      await eventually(async () => {
        await workers.work(NODES);
        expect((await rig.jobs.getJob({ name })).job?.executions?.ready).toBe(1);
      });
      const [found] = (await rig.jobs.listExecutions({ job: name })).executions;
      const { id: execution = "", nodeId = "", createTime } = found ?? {};
      const createdAtMs = createTime === undefined ? Number.NaN : timestampMs(createTime);
      await ORDERS[why]?.(name);
      const reason = stateWords(why.split(",")[0] ?? "");
      const subjects = [{ case: "job", value: name } as const, { case: "node", value: nodeId } as const];
      for (const subject of subjects) {
        await eventually(async () => {
          const { waits } = await rig.jobs.explainExecution({ subject });
          const wait = waits.find(({ executionIds }) => executionIds.includes(execution));
          expect(wait).toMatchObject({ reason: "STOPPING", text: expect.stringContaining(`(${reason})`) });
          const [since, until] = [wait?.since, wait?.until].map((time) => (time === undefined ? 0 : timestampMs(time)));
          expect(since).toBeGreaterThanOrEqual(createdAtMs);
          // An execution keeps the grace period of version 1.
          if (why === "JOB_UPDATED") expect(wait).toMatchObject({ text: expect.stringContaining("of version 1") });
          else expect(until).toBe(Number(since) + 40_000);
        });
      }
      // Stop the job, because otherwise the next case would find the job's executions on the nodes.
      if (why !== "JOB_STOPPED") await rig.jobs.stopJob({ name });
      await eventually(async () => {
        await workers.work(NODES);
        expect((await rig.jobs.explainExecution({ subject: { case: "job", value: name } })).waits).toEqual([]);
      });
    },
  );

  it("should count the executions of a job that have no node as WAITING, whatever its nodes do", async () => {
    const operators = new Operators(database.store);
    const labels = { pool: "rule" };
    for (const id of ["r1", "r2"]) {
      await addWorkNode(database.store, id, { labels });
      await tellOf(database.store, id);
    }
    const where = { selector: "pool=rule", matchAgentLabels: true };
    const spread = { ...where, placement: { maxPerNode: 1 } };
    await rig.jobs.submitJob({ spec: serviceOf("rule-service", 3, spread) });
    await rig.jobs.submitJob({ spec: serviceOf("rule-batch", 3, { ...spread, type: JobType.BATCH }) });
    await rig.jobs.submitJob({ spec: serviceOf("rule-daemon", 0, { ...where, type: JobType.DAEMON }) });
    const agree = async (job: string, ready: number, waiting: number) => {
      await eventually(async () => {
        await workers.work(["r1", "r2"]);
        const counts = (await rig.jobs.getJob({ name: job })).job?.executions;
        expect([counts?.ready, counts?.stopping, counts?.waiting]).toEqual([ready, 0, waiting]);
        const { waits } = await rig.jobs.explainExecution({ subject: { case: "job", value: job } });
        const without = waits.filter(({ reason }) => !PLACED.has(reason));
        expect(without.reduce((sum, { executions }) => sum + executions, 0)).toBe(waiting);
      });
    };
    const agreeAll = async (ready: number, waiting: Readonly<Record<string, number>>) => {
      for (const [job, count] of Object.entries(waiting)) await agree(job, ready, count);
    };
    await agreeAll(2, { "rule-service": 1, "rule-batch": 1, "rule-daemon": 0 });
    await operators.drain("r2", { force: true });
    await agreeAll(1, { "rule-service": 2, "rule-batch": 2, "rule-daemon": 0 });
    await operators.undrain("r2");
    await agreeAll(2, { "rule-service": 1, "rule-batch": 1, "rule-daemon": 0 });
    for (const name of ["rule-service", "rule-batch", "rule-daemon"]) await rig.jobs.stopJob({ name });
    // A daemon also waits on a node that has never had room for it.
    await eventually(async () => {
      await workers.work(["r1", "r2"]);
      const { waits } = await rig.jobs.explainExecution({ subject: { case: "node", value: "r1" } });
      expect(waits).toEqual([]);
    });
    await rig.jobs.submitJob({
      spec: serviceOf("rule-filler", 1, { ...where, constraints: { node: "r1" }, ...LARGE }),
    });
    await agree("rule-filler", 1, 0);
    await rig.jobs.submitJob({ spec: serviceOf("rule-late", 0, { ...where, type: JobType.DAEMON, ...LARGE }) });
    await agree("rule-late", 1, 1);
    const { waits } = await rig.jobs.explainExecution({ subject: { case: "node", value: "r1" } });
    expect(waits).toMatchObject([{ job: "rule-late", reason: "NO_NODE_FITS", nodeIds: ["r1"] }]);
    expect((await rig.jobs.getJob({ name: "rule-late" })).job).toMatchObject({ wanted: 2 });
    await rig.jobs.stopJob({ name: "rule-filler" });
    await agree("rule-late", 2, 0);
    await rig.jobs.stopJob({ name: "rule-late" });
  });
});
