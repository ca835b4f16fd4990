import { create } from "@bufbuild/protobuf";
import { describe, expect, it } from "@jest/globals";
import { DeclaredObjectSchema } from "@rollcall/api/rollcall/admin/v1/declared_state_pb";
import { JobSpecSchema, JobType } from "@rollcall/api/rollcall/work/v1/work_pb";
import { canBeWritten } from "./write-objects.ts";

describe("canBeWritten()", () => {
  it.each([
    [JobType.SERVICE, 0, false],
    [JobType.BATCH, 0, false],
    [JobType.SERVICE, 2, true],
    // Of these a count says nothing.
    [JobType.DAEMON, 0, true],
    [JobType.OPS, 0, true],
  ])("should leave out a job that is scaled to 0, which a file would start: type %s, count %s", (type, count, can) => {
    const task = { case: "process" as const, value: { command: ["sleep", "infinity"] } };
    const spec = create(JobSpecSchema, { name: "web", type, count, task });
    const object = create(DeclaredObjectSchema, { object: { case: "job", value: { spec } } });
    expect(canBeWritten(object)).toBe(can);
  });
});
