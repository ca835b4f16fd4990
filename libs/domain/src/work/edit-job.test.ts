import { describe, expect, it } from "@jest/globals";
import { refuseJobEdit } from "./edit-job.ts";
import type { JobState } from "./job-record.ts";

describe("refuseJobEdit()", () => {
  it.each<[JobState, string | null]>([
    ["ACTIVE", null],
    ["STOPPED", "JOB_STOPPED"],
    ["COMPLETED", "JOB_ENDED"],
    ["FAILED", "JOB_ENDED"],
  ])("should answer for a job that is %s: %s", (state, refusal) => {
    expect(refuseJobEdit(state)).toBe(refusal);
  });
});
