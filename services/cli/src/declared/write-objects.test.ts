import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { describe, expect, it } from "@jest/globals";
import { DeclaredObjectSchema } from "@rollcall/api/rollcall/admin/v1/declared_state_pb";
import { JobSpecSchema, JobType } from "@rollcall/api/rollcall/work/v1/work_pb";
import { canBeWritten } from "./write-objects.ts";

describe("canBeWritten()", () => {
  const task = { case: "process" as const, value: { command: ["sleep", "infinity"] } };
  const canWrite = (spec: MessageInitShape<typeof JobSpecSchema>) => {
    const value = { spec: create(JobSpecSchema, { name: "web", task, ...spec }) };
    return canBeWritten(create(DeclaredObjectSchema, { object: { case: "job", value } }));
  };

  it.each([
    [JobType.SERVICE, 0],
    [JobType.BATCH, 0],
    [JobType.SERVICE, 2],
    [JobType.SERVICE, undefined],
    // Daemons and ops jobs ignore the count.
    [JobType.DAEMON, 0],
    [JobType.OPS, 0],
  ])("should accept any count, also 0: type %s, count %s", (type, count) => {
    expect(canWrite({ type, ...(count === undefined ? {} : { count }) })).toBe(true);
  });

  it("should leave out a job with a value that a file cannot express", () => {
    expect(canWrite({ type: JobType.DAEMON, queueTimeout: { seconds: 1n, nanos: 1 } })).toBe(false);
  });
});
