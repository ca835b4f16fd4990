import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { describe, expect, it } from "@jest/globals";
import { JobSchema, JobState } from "@rollcall/api/rollcall/scheduler/v1/job_pb";
import { JobSpecSchema, JobType } from "@rollcall/api/rollcall/work/v1/work_pb";
import { progressOf } from "./follow.ts";

function job(type: JobType, fields: MessageInitShape<typeof JobSchema>) {
  const spec = create(JobSpecSchema, { name: "web", type });
  return Object.assign(create(JobSchema, { state: JobState.ACTIVE, wanted: 3, ...fields }), { spec });
}

const { SERVICE, BATCH, DAEMON } = JobType;

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
    ["a service that is ready", job(SERVICE, { executions: { ready: 3 } }), "done", "3 of 3 ready"],
    ["a service of none", job(SERVICE, { wanted: 0 }), "done", "0 of 0 ready"],
    [
      "a service that is ready and rolls",
      job(SERVICE, { executions: { ready: 3 }, update: { done: 1, total: 3 } }),
      ...(["going-on", "3 of 3 ready; 1 of 3 updated"] as const),
    ],
    [
      "an update that stopped",
      job(SERVICE, { executions: { ready: 3 }, update: { done: 1, total: 3, halted: true, message: "not ready" } }),
      ...(["failed", "its update halted at 1 of 3: not ready"] as const),
    ],
    ["a daemon that no node matches", job(DAEMON, { wanted: 0 }), "done", "0 of 0 ready"],
    ["a batch job that runs", job(BATCH, { executions: { running: 3 } }), "done", "0 of 3 ready, 3 running"],
    [
      "a batch job that is not started",
      job(BATCH, { executions: { pending: 1, running: 2 } }),
      "going-on",
      "0 of 3 ready, 2 running, 1 placed",
    ],
    ["a batch job that completed", job(BATCH, { state: JobState.COMPLETED }), "done", "completed"],
    [
      "a batch job that failed",
      job(BATCH, { state: JobState.FAILED, message: "no node" }),
      "failed",
      "it failed: no node",
    ],
    ["a job that was stopped", job(SERVICE, { state: JobState.STOPPED }), "failed", "it was stopped"],
  ])("should tell of %s", (_, given, kind, text) => {
    expect(progressOf(given)).toEqual({ kind, text });
  });
});
