import type { JobState } from "./job-record.ts";

/** A change of a job that makes no new version. */
export type JobEditKind = "JOB_SCALED" | "JOB_RESTARTED" | "JOB_STOPPED";

/** Why a job in its present state cannot be changed. */
export type JobEditRefusal = "JOB_STOPPED" | "JOB_ENDED";

/** Decide whether a job can be changed. Null means yes; stopping a job that has ended would only hide its result. */
export function refuseJobEdit(state: JobState, kind: JobEditKind): JobEditRefusal | null {
  switch (state) {
    case "ACTIVE":
      return null;
    case "STOPPED":
      return "JOB_STOPPED";
    case "COMPLETED":
    case "FAILED":
      return kind === "JOB_STOPPED" ? "JOB_ENDED" : null;
  }
}
