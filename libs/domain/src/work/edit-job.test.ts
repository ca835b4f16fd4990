import { describe, expect, it } from "@jest/globals";
import { type JobEditKind, refuseJobEdit } from "./edit-job.ts";
import type { JobState } from "./job-record.ts";

describe("refuseJobEdit()", () => {
  it.each<[JobState, JobEditKind, string | null]>([
    ["ACTIVE", "JOB_STOPPED", null],
    ["STOPPED", "JOB_STOPPED", "JOB_STOPPED"],
    ["COMPLETED", "JOB_STOPPED", "JOB_ENDED"],
    ["FAILED", "JOB_STOPPED", "JOB_ENDED"],
    ["ACTIVE", "JOB_SCALED", null],
    ["STOPPED", "JOB_SCALED", "JOB_STOPPED"],
    ["COMPLETED", "JOB_SCALED", null],
    ["STOPPED", "JOB_RESTARTED", "JOB_STOPPED"],
    ["FAILED", "JOB_RESTARTED", null],
  ])("should answer for a job that is %s and %s: %s", (state, kind, refusal) => {
    expect(refuseJobEdit(state, kind)).toBe(refusal);
  });
});
