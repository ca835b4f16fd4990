import type { Job } from "@rollcall/api/rollcall/scheduler/v1/job_pb";
import { refusesRestart } from "@rollcall/domain";

/** Whether a job's update halted and there is a version to revert to. The server then refuses to restart the job. */
export function isRevertible({
  update,
  version,
  readyVersion,
  sameVersions,
}: Pick<Job, "update" | "version" | "readyVersion" | "sameVersions">): boolean {
  const halted = update?.halted === true ? update.message : null;
  return readyVersion > 0 && refusesRestart({ halted, version, readyVersion, sameVersions });
}
