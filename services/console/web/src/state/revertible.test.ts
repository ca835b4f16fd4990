import { create } from "@bufbuild/protobuf";
import { describe, expect, it } from "@jest/globals";
import { JobSchema } from "@rollcall/api/rollcall/scheduler/v1/job_pb";
import { isRevertible } from "./revertible.ts";

describe("isRevertible()", () => {
  const update = { halted: true, message: "it failed" };
  it.each([
    ["an update that halted", { update, version: 2, readyVersion: 1 }, true],
    ["an update that continues", { update: { halted: false }, version: 2, readyVersion: 1 }, false],
    ["no update", { version: 2, readyVersion: 1 }, false],
    ["no version was ever ready", { update, version: 2, readyVersion: 0 }, false],
    ["a halted restart", { update, version: 2, readyVersion: 2 }, false],
    [
      "a halted revert to the version that was ready",
      { update, version: 3, readyVersion: 1, sameVersions: [1] },
      false,
    ],
  ])("should answer for %s", (_, fields, expected) => {
    expect(isRevertible(create(JobSchema, fields))).toBe(expected);
  });
});
