import { create, toBinary } from "@bufbuild/protobuf";
import { ExecutionSpecSchema, JobType } from "@rollcall/api/rollcall/work/v1/work_pb";

/** The spec of a process, as a server has it. */
export function specBytes(command: readonly string[]): Buffer {
  const value = { command: [...command] };
  const init = { job: "scripted", version: 1, type: JobType.SERVICE, task: { case: "process" as const, value } };
  return Buffer.from(toBinary(ExecutionSpecSchema, create(ExecutionSpecSchema, init)));
}
