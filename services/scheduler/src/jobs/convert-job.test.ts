import { create, toJson } from "@bufbuild/protobuf";
import { describe, expect, it } from "@jest/globals";
import { JobSpecSchema, JobType } from "@rollcall/api/rollcall/work/v1/work_pb";
import type { ExecutionTally, JobRow } from "@rollcall/store";
import { jobToProto } from "./convert-job.ts";

const TASK = { case: "process" as const, value: { command: ["true"] } };
const JOB: JobRow = {
  ...{ name: "web", type: "service", version: 2, state: "ACTIVE", message: "", count: 2, restartBefore: "" },
  spec: toJson(JobSpecSchema, create(JobSpecSchema, { name: "web", type: JobType.SERVICE, count: 2, task: TASK })),
  ...{
    halted: null,
    readyVersion: null,
    sameVersions: [],
    undone: null,
    rolledOut: false,
    waitingNodes: 0,
    placed: true,
    submittedAtMs: 0,
    createdAtMs: 0,
    updatedAtMs: 0,
    actor: "token:t",
    etag: "e",
  },
} as unknown as JobRow;
const OLD: ExecutionTally = {
  ...{
    job: "web",
    state: "LIVE",
    desired: "RUN",
    observed: "READY",
    current: false,
    nodeHealthy: true,
    replaced: false,
  },
  count: 1,
};
const NEW: ExecutionTally = { ...OLD, current: true };

describe("jobToProto(), progress of an update", () => {
  it.each<[string, readonly ExecutionTally[], string | null, object]>([
    ["with no updated execution", [{ ...OLD, count: 2 }], null, { done: 0, total: 2, halted: false }],
    ["with one updated execution", [OLD, NEW], null, { done: 1, total: 2 }],
    ["whose new execution failed", [OLD, { ...NEW, state: "FAILED" }], "why", { done: 0, total: 2, halted: true }],
    ["whose new execution was told to stop", [OLD, { ...NEW, desired: "STOP" }], "why", { done: 0, total: 2 }],
    ["whose old execution was lost", [NEW, { ...OLD, state: "LOST" }], "why", { done: 1, total: 2 }],
  ])("should count the wanted executions of a service %s", (_, tally, halted, expected) => {
    expect(jobToProto({ job: { ...JOB, halted }, tally }).update).toMatchObject(expected);
  });
});

describe("jobToProto(), waiting executions of an ops job", () => {
  const ops = { ...JOB, type: "ops" as const, count: 0 };
  const completed: ExecutionTally = { ...NEW, state: "COMPLETED", desired: "FORGET", observed: "ENDED" };
  it.each<[string, readonly ExecutionTally[], object]>([
    ["one completed", [completed, { ...NEW, observed: "RUNNING" }], { completed: 1, running: 1 }],
    ["two failed", [{ ...completed, state: "FAILED", count: 2 }], { failed: 2 }],
    ["one out of memory", [{ ...completed, state: "KILLED_OOM" }, { ...completed }], { failed: 1, completed: 1 }],
    ["one lost", [{ ...NEW, state: "LOST", nodeHealthy: false }, { ...completed }], { lost: 1, completed: 1 }],
  ])("should not count executions that do not exist, with %s", (_, tally, expected) => {
    const { executions } = jobToProto({ job: ops, tally });
    expect(executions).toMatchObject({ ...expected, waiting: 0 });
  });
});
