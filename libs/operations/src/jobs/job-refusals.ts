import type { ConnectError } from "@connectrpc/connect";
import type { JobEditKind } from "@rollcall/domain";
import { type FieldViolation, refusalError, refuse } from "@rollcall/errors";
import { type Db, type StoredJob, withSuggestion } from "@rollcall/store";
import { violationsText } from "@rollcall/wire";

/** Jobs at most. */
export const MOST_JOBS = 10_000;

/** The refusal of a name that no job has, with the job that was most likely meant. */
export async function jobNotFound(db: Db, name: string): Promise<ConnectError> {
  const missing = { reason: "JOB_NOT_FOUND", message: `there is no job ${name}`, metadata: { job: name } } as const;
  return refusalError(await withSuggestion(db, "job", name, missing), name);
}

/** The job is not one that can run. */
export function invalidJob(violations: readonly { readonly field: string; readonly message: string }[]): ConnectError {
  const fields: FieldViolation[] = violations.map(({ field, message }) => ({
    field: field === "" ? "spec" : `spec.${field}`,
    description: message,
  }));
  return refuse("INVALID_JOB", violationsText(violations), { violations: fields });
}

/** The job was stopped. */
export function jobStopped(name: string): ConnectError {
  const text = `job ${name} was stopped: submit it again to start it`;
  return refuse("JOB_STOPPED", text, { metadata: { job: name }, subject: name });
}

/** The job has ended: nothing of it can be stopped, scaled or restarted. */
export function jobEnded(name: string, state: StoredJob["state"], edit: JobEditKind): ConnectError {
  const isStop = edit === "JOB_STOPPED";
  const text = `job ${name} has already ended: it is ${state}${isStop ? "" : "; submit it again to run it again"}`;
  return refuse("JOB_ENDED", text, { metadata: { job: name, state }, subject: name });
}

/** No caller may change a job that is not as it saw it. */
export function checkJobEtag(job: Pick<StoredJob, "name" | "etag"> | null, name: string, etag: string): void {
  if (etag === "" || job?.etag === etag) return;
  const text =
    job === null
      ? `job ${name} is not there any more: read it again`
      : `job ${name} has changed: read it again, and decide again`;
  throw refuse("ETAG_MISMATCH", text, { metadata: { job: name } });
}

/** There are as many jobs as can be. */
export function tooManyJobs(): ConnectError {
  return refuse("TOO_MANY_JOBS", `there are ${MOST_JOBS} jobs, and can be no more`, {
    metadata: { most: String(MOST_JOBS) },
  });
}
