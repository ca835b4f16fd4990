import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { describe, expect, it } from "@jest/globals";
import { ExecutionSchema, ExecutionState } from "@rollcall/api/rollcall/scheduler/v1/job_pb";
import { exitCodeOf } from "./run-command.ts";
import { endWords } from "./words.ts";

const { COMPLETED, FAILED, STOPPED, KILLED_OOM, LOST, RUNNING } = ExecutionState;

describe("endWords()", () => {
  it.each<[MessageInitShape<typeof ExecutionSchema>, string]>([
    [{ state: FAILED, reason: "EXITED", observation: { exitCode: 3 } }, "exited, exit code 3"],
    [{ state: STOPPED, reason: "JOB_STOPPED", observation: { exitCode: 0 } }, "job stopped, exit code 0"],
    [{ state: FAILED, reason: "NODE_LOST", observation: { exitCode: 0 } }, "node lost"],
    [{ state: FAILED, reason: "NODE_LOST", observation: { signal: "SIGTERM" } }, "node lost"],
  ])("should say of %j: %s", (execution, words) => {
    expect(endWords(create(ExecutionSchema, execution))).toBe(words);
  });
});

describe("exitCodeOf()", () => {
  it.each<[MessageInitShape<typeof ExecutionSchema>, number]>([
    [{ state: COMPLETED }, 0],
    [{ state: FAILED, observation: { exitCode: 3 } }, 3],
    [{ state: FAILED, observation: { exitCode: 1 } }, 1],
    [{ state: FAILED, observation: { signal: "SIGTERM" } }, 143],
    [{ state: STOPPED, observation: { signal: "SIGKILL" } }, 137],
    [{ state: KILLED_OOM }, 137],
    [{ state: FAILED, observation: { signal: "SIGNONE" } }, 75],
    [{ state: FAILED, reason: "START_FAILED" }, 75],
    [{ state: LOST }, 75],
    // The command handled the signal that stopped it and exited with 0.
    [{ state: FAILED, reason: "DEADLINE_EXCEEDED", observation: { exitCode: 0 } }, 75],
    [{ state: STOPPED, reason: "JOB_STOPPED", observation: { exitCode: 0 } }, 75],
    [{ state: STOPPED, reason: "JOB_STOPPED", observation: { exitCode: 4 } }, 4],
    // The node's later report only shows how the program was stopped.
    [{ state: FAILED, reason: "NODE_LOST", observation: { exitCode: 0 } }, 75],
    [{ state: STOPPED, reason: "UNCONFIRMED", observation: { signal: "SIGTERM" } }, 75],
  ])("should be, of %j, %d", (execution, code) => {
    expect(exitCodeOf(create(ExecutionSchema, execution))).toBe(code);
  });

  it("should be 0 once the job has completed, even if a later report shows that the execution runs", () => {
    expect(exitCodeOf(create(ExecutionSchema, { state: RUNNING }), true)).toBe(0);
  });
});
