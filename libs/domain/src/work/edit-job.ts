import type { JobState } from "./job-record.ts";

/** A change of a job that makes no new version. */
export type JobEditKind = "JOB_SCALED" | "JOB_RESTARTED" | "JOB_STOPPED";

/** Why a job in its present state cannot be changed. */
export type JobEditRefusal = "JOB_STOPPED" | "JOB_ENDED";

/**
 * Decide whether a job can be changed. Null means yes. A job that has ended keeps its result, and only runs again when
 * it is submitted again: to scale or restart it would have no effect.
 */
export function refuseJobEdit(state: JobState): JobEditRefusal | null {
  switch (state) {
    case "ACTIVE":
      return null;
    case "STOPPED":
      return "JOB_STOPPED";
    case "COMPLETED":
    case "FAILED":
      return "JOB_ENDED";
  }
}
