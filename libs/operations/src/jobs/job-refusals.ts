import type { ConnectError } from "@connectrpc/connect";
import { type FieldViolation, refuse } from "@rollcall/errors";
import type { StoredJob } from "@rollcall/store";
import { violationsText } from "@rollcall/wire";

/** Jobs at most. */
export const MOST_JOBS = 10_000;

/** There is no such job. */
export function jobNotFound(name: string): ConnectError {
  const text = `there is no job ${name}: list them with \`rollcall job list\``;
  return refuse("JOB_NOT_FOUND", text, { metadata: { job: name } });
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
