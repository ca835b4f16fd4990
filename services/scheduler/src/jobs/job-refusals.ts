import type { ConnectError } from "@connectrpc/connect";
import { type FieldViolation, refuse } from "@rollcall/errors";
import type { StoredJob } from "@rollcall/store";
import type { JobOutlook } from "./node-view.ts";

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
  const text = violations.map(({ field, message }) => (field === "" ? message : `${field}: ${message}`)).join("; ");
  return refuse("INVALID_JOB", text, { violations: fields });
}

/** The job was stopped. */
export function jobStopped(name: string): ConnectError {
  const text = `job ${name} was stopped: submit it again to start it`;
  return refuse("JOB_STOPPED", text, { metadata: { job: name }, subject: name });
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

/** A reason for which a node will not do, for people. */
export function refusalText(reason: string): string {
  return reason.toLowerCase().replaceAll("_", " ");
}

/** No node fits a job that does not wait for one. */
export function fitsNowhere(name: string, { nodes, refusals }: Pick<JobOutlook, "nodes" | "refusals">): ConnectError {
  const reasons = refusals.map((refusal) => `${refusal.nodes} of ${nodes} nodes: ${refusalText(refusal.reason)}`);
  const why = reasons.length === 0 ? "there are no compute nodes" : reasons.join("; ");
  const metadata = Object.fromEntries(refusals.map(({ reason, nodes: count }) => [reason, String(count)]));
  return refuse("JOB_FITS_NOWHERE", `no node fits job ${name}, and it has no queue timeout: ${why}`, {
    metadata: { job: name, ...metadata },
  });
}
