import type { ConnectError } from "@connectrpc/connect";
import { type Refusals, refusalsText } from "@rollcall/domain";
import { type FieldViolation, refuse } from "@rollcall/errors";
import type { StoredJob } from "@rollcall/store";
import { violationsText } from "./job-text.ts";

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

/** The job wants no executions. */
export function jobCountIsZero(name: string): ConnectError {
  const text = `job ${name} has a count of 0, so that what it adopts would be stopped: scale it first`;
  return refuse("JOB_COUNT_IS_ZERO", text, { metadata: { job: name }, subject: name });
}

/** Nobody may change a job that is not as the caller saw it. */
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

/** No node fits a job that does not wait for one. */
export function fitsNowhere(name: string, why: Refusals): ConnectError {
  const metadata = Object.fromEntries(why.counts.map(({ reason, nodes }) => [reason, String(nodes)]));
  const text = `no node fits job ${name}, and it has no queue timeout: ${refusalsText(why)}`;
  return refuse("JOB_FITS_NOWHERE", text, {
    metadata: { job: name, ...metadata },
  });
}
