import { create, toJson } from "@bufbuild/protobuf";
import { describe, expect, it } from "@jest/globals";
import { JobSpecSchema, JobType } from "@rollcall/api/rollcall/work/v1/work_pb";
import type { ExecutionTally, StoredJob } from "@rollcall/store";
import { jobToProto } from "./convert-job.ts";

const TASK = { case: "process" as const, value: { command: ["true"] } };
const JOB: StoredJob = {
  ...{ name: "web", type: "service", version: 2, state: "ACTIVE", message: "", count: 2, restartBefore: "" },
  spec: toJson(JobSpecSchema, create(JobSpecSchema, { name: "web", type: JobType.SERVICE, count: 2, task: TASK })),
  ...{
    halted: null,
    readyVersion: null,
    sameVersions: [],
    undone: null,
    placed: true,
    submittedAtMs: 0,
    createdAtMs: 0,
    updatedAtMs: 0,
    actor: "token:t",
    etag: "e",
  },
} as unknown as StoredJob;
const OLD: ExecutionTally = {
  ...{ job: "web", state: "LIVE", desired: "RUN", observed: "READY", current: false, nodeWell: true, replaced: false },
  count: 1,
};
const NEW: ExecutionTally = { ...OLD, current: true };

describe("jobToProto(), how far an update is", () => {
  it.each<[string, readonly ExecutionTally[], string | null, object]>([
    ["of which none is updated", [{ ...OLD, count: 2 }], null, { done: 0, total: 2, halted: false }],
    ["of which one is updated", [OLD, NEW], null, { done: 1, total: 2 }],
    ["whose new execution failed", [OLD, { ...NEW, state: "FAILED" }], "why", { done: 0, total: 2, halted: true }],
    ["whose new execution is told to stop", [OLD, { ...NEW, desired: "STOP" }], "why", { done: 0, total: 2 }],
    ["whose old execution was lost", [NEW, { ...OLD, state: "LOST" }], "why", { done: 1, total: 2 }],
  ])("should count the executions that are wanted of a service %s", (_, tally, halted, expected) => {
    expect(jobToProto({ job: { ...JOB, halted }, tally }).update).toMatchObject(expected);
  });
});
