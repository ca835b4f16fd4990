import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { describe, expect, it } from "@jest/globals";
import { ExecutionSchema, ExecutionState, JobSchema, JobState } from "@rollcall/api/rollcall/scheduler/v1/job_pb";
import { JobSpecSchema, JobType } from "@rollcall/api/rollcall/work/v1/work_pb";
import { givenUp, progressOf, revertHint } from "./follow.ts";

function job(type: JobType, fields: MessageInitShape<typeof JobSchema>) {
  const spec = create(JobSpecSchema, { name: "web", type });
  return Object.assign(create(JobSchema, { state: JobState.ACTIVE, wanted: 3, ...fields }), { spec });
}

const { SERVICE, BATCH, OPS, DAEMON } = JobType;

describe("progressOf()", () => {
  it.each<[string, ReturnType<typeof job>, string, string]>([
    [
      "a service that has just come",
      job(SERVICE, { executions: { waiting: 3 } }),
      "going-on",
      "0 of 3 ready, 3 waiting",
    ],
    [
      "a service of which a part is ready",
      job(SERVICE, { executions: { ready: 2, running: 1 } }),
      "going-on",
      "2 of 3 ready, 1 running",
    ],
    [
      "a service that is rolled out",
      job(SERVICE, { rolledOut: true, executions: { ready: 3 } }),
      "done",
      "3 of 3 ready",
    ],
    [
      "a service that is ready, and was not for long enough",
      job(SERVICE, { executions: { ready: 3 } }),
      ...(["going-on", "3 of 3 ready, but not yet for update.minReadyTime"] as const),
    ],
    [
      "a service that was rolled out, and has lost one",
      job(SERVICE, { rolledOut: true, executions: { ready: 2, lost: 1 } }),
      ...(["going-on", "2 of 3 ready, 1 lost"] as const),
    ],
    ["a service of none", job(SERVICE, { wanted: 0 }), "done", "0 of 0 ready"],
    [
      "a service that is ready and rolls",
      job(SERVICE, { executions: { ready: 3 }, update: { done: 1, total: 3 } }),
      ...(["going-on", "3 of 3 ready; 1 of 3 updated"] as const),
    ],
    [
      "an update that stopped",
      job(SERVICE, { executions: { ready: 3 }, update: { done: 1, total: 3, halted: true, message: "not ready" } }),
      ...(["failed", "update halted at 1 of 3: not ready"] as const),
    ],
    ["a daemon that no node matches", job(DAEMON, { wanted: 0 }), "done", "0 of 0 ready"],
    [
      "a batch job that runs",
      job(BATCH, { executions: { running: 2, ready: 1 } }),
      ...(["going-on", "0 of 3 completed, 3 running"] as const),
    ],
    ["an ops job that has no execution yet", job(OPS, { wanted: 0 }), ...(["going-on", "0 of 0 completed"] as const)],
    [
      "a batch job that is not started",
      job(BATCH, { executions: { pending: 1, running: 2 } }),
      "going-on",
      "0 of 3 completed, 2 running, 1 placed",
    ],
    ["a batch job that completed", job(BATCH, { state: JobState.COMPLETED }), "done", "completed"],
    [
      "a batch job that failed",
      job(BATCH, { state: JobState.FAILED, message: "no node" }),
      "failed",
      "failed: no node",
    ],
    ["a job that was stopped", job(SERVICE, { state: JobState.STOPPED }), "failed", "stopped"],
  ])("should describe %s", (_, given, kind, text) => {
    expect(progressOf(given)).toEqual({ kind, text });
  });
});

describe("givenUp()", () => {
  const { FAILED, KILLED_OOM, READY, RUNNING } = ExecutionState;
  const web = (attempts?: number) => {
    const retry = attempts === undefined ? {} : { retry: { attempts } };
    return Object.assign(create(JobSchema, { version: 2, run: 3 }), {
      spec: create(JobSpecSchema, { name: "web", ...retry }),
    });
  };
  const run = (state: ExecutionState, attempt: number, fields: MessageInitShape<typeof ExecutionSchema> = {}) =>
    create(ExecutionSchema, { version: 2, run: 3, index: 0, state, attempt, reason: "EXITED", ...fields });

  /**
   * Times of an execution that ran for `seconds` by its node's clock, and ended `placed` seconds after it was
   * created.
   */
  const ranFor = (seconds: number, placed = seconds + 1) => ({
    createTime: { seconds: 1_000n },
    endTime: { seconds: 1_000n + BigInt(placed) },
    observation: { startTime: { seconds: 50_000n }, endTime: { seconds: 50_000n + BigInt(seconds) } },
  });

  it.each([
    ["nothing ran", web(), [], null],
    ["it failed twice", web(), [run(FAILED, 1), run(FAILED, 0)], null],
    ["it failed three times", web(), [run(FAILED, 2), run(FAILED, 1)], "replica 0 failed 3 times in a row"],
    ["it failed for good at once", web(0), [run(KILLED_OOM, 0)], "replica 0 failed once"],
    ["it has a retry left", web(1), [run(FAILED, 0)], null],
    ["it runs again", web(), [run(RUNNING, 3), run(FAILED, 2)], null],
    ["it is ready again", web(0), [run(READY, 0), run(FAILED, 0)], null],
    ["it failed once after it ran well", web(), [run(FAILED, 4, ranFor(600))], null],
    [
      "it failed once after it ran well, and has no retries",
      web(0),
      [run(FAILED, 4, ranFor(600))],
      "replica 0 failed once",
    ],
    ["it failed again after too short", web(), [run(FAILED, 4, ranFor(599))], "replica 0 failed 5 times in a row"],
    ["its node's clock stepped", web(), [run(FAILED, 2, ranFor(600, 10))], "replica 0 failed 3 times in a row"],
    [
      "it lost the control plane, which is no failure",
      web(0),
      [run(FAILED, 0, { reason: "CONTROL_PLANE_LOST" })],
      null,
    ],
    ["another version failed", web(0), [run(FAILED, 0, { version: 1 })], null],
    ["an earlier run failed", web(0), [run(FAILED, 0, { run: 2 })], null],
    ["another replica failed", web(0), [run(READY, 0), run(FAILED, 0, { index: 4 })], "replica 4 failed once"],
  ])("should depend on the newest execution of each replica if %s", (_, job, newestFirst, why) => {
    expect(givenUp(job, newestFirst)).toBe(why);
  });
});

describe("revertHint()", () => {
  it("should name the version that was ready before, if there is one", () => {
    const hint = "\nhint: `rollcall job revert web` returns to version 2";
    expect(revertHint(job(SERVICE, { version: 3, readyVersion: 2 }))).toBe(hint);
    expect(revertHint(job(SERVICE, { version: 3, readyVersion: 3 }))).toBe("");
    expect(revertHint(job(SERVICE, { version: 1 }))).toBe("");
  });
});
