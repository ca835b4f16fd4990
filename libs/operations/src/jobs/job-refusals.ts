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
export function jobEnded(name: string, state: StoredJob["state"], edit: JobEditKind | "JOB_REVERTED"): ConnectError {
  const isStop = edit === "JOB_STOPPED";
  const text = `job ${name} has already ended: it is ${state}${isStop ? "" : "; submit it again to run it again"}`;
  return refuse("JOB_ENDED", text, { metadata: { job: name, state }, subject: name });
}

/** The job is kept running, so it cannot be deleted. */
export function jobActive(name: string): ConnectError {
  const text = `job ${name} is ACTIVE: stop it before it is deleted`;
  return refuse("JOB_ACTIVE", text, { metadata: { job: name }, subject: name });
}

/** Executions of the job may still run, so it cannot be deleted. */
export function jobNotEnded(name: string, executions: number): ConnectError {
  const what = executions === 1 ? "1 execution has" : `${executions} executions have`;
  const text =
    `${what} not ended of job ${name}, or their nodes have not confirmed it: delete the job when they have, or first ` +
    "delete the nodes that are gone for good";
  return refuse("JOB_NOT_ENDED", text, { metadata: { job: name, executions: String(executions) }, subject: name });
}

/**
 * The version cannot be reverted to: it is not kept, or none was named and no earlier one became ready.
 *
 * @param kept the versions that are kept, the newest first.
 */
export function jobVersionNotFound(name: string, version: number | null, kept: readonly number[]): ConnectError {
  const text =
    version === null
      ? `no earlier version of job ${name} with another specification became ready: name the version to revert to`
      : `job ${name} has no version ${version}${kept.length === 0 ? "" : `; it has ${rangesText(kept)}`}`;
  const metadata = { job: name, ...(version === null ? {} : { version: String(version) }) };
  return refuse("JOB_VERSION_NOT_FOUND", text, { metadata, subject: name });
}

/** Numbers that descend as ranges: 9-7, 5. */
function rangesText(descending: readonly number[]): string {
  const ranges: (readonly [number, number])[] = [];
  for (const number of descending) {
    const last = ranges.at(-1);
    if (last !== undefined && last[0] === number + 1) ranges[ranges.length - 1] = [number, last[1]];
    else ranges.push([number, number]);
  }
  return ranges
    .map(([from, to]) => (from === to ? String(from) : `${from} to ${to}`))
    .reverse()
    .join(", ");
}

/** The newest version of the job has that specification. */
export function jobVersionIsNewest({ name, version }: StoredJob, wanted: number, origin: number): ConnectError {
  const same = wanted === version ? "" : `, which has the specification of version ${origin}`;
  const text = `job ${name} is at version ${version}${same}: name another version to revert to`;
  return refuse("JOB_VERSION_IS_NEWEST", text, {
    metadata: { job: name, version: String(version) },
    subject: name,
  });
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
