import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { describe, expect, it } from "@jest/globals";
import { ExecutionSchema, ExecutionState } from "@rollcall/api/rollcall/scheduler/v1/job_pb";
import { exitCodeOf } from "./run-command.ts";

const { COMPLETED, FAILED, STOPPED, KILLED_OOM, LOST } = ExecutionState;

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
  ])("should be, of %j, %d", (execution, code) => {
    expect(exitCodeOf(create(ExecutionSchema, execution))).toBe(code);
  });
});
