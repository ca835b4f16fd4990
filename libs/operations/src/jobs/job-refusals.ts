import { type JobEditKind, stateWords } from "@rollcall/domain";
import { type FieldViolation, type RefusalError, refusalError, refuse } from "@rollcall/errors";
import { type Db, type JobRow, withSuggestion } from "@rollcall/store";
import { violationsText } from "@rollcall/wire";

/** Jobs at most. */
export const MOST_JOBS = 10_000;

/** The refusal for an unknown job name, with the most similar name. */
export async function jobNotFound(db: Db, name: string): Promise<RefusalError> {
  const missing = { reason: "JOB_NOT_FOUND", message: `there is no job ${name}`, metadata: { job: name } } as const;
  return refusalError(await withSuggestion(db, "job", name, missing), name);
}

/** The refusal for an invalid job specification. */
export function invalidJob(violations: readonly { readonly field: string; readonly message: string }[]): RefusalError {
  const fields: FieldViolation[] = violations.map(({ field, message }) => ({
    field: field === "" ? "spec" : `spec.${field}`,
    description: message,
  }));
  return refuse("INVALID_JOB", violationsText(violations), { violations: fields });
}

export function jobStopped(name: string): RefusalError {
  const text = `job ${name} is stopped; submit it again to start it`;
  return refuse("JOB_STOPPED", text, { metadata: { job: name }, subject: name });
}

/** The refusal of a restart: the update to the job's newest version halted, and a restart would start that version. */
export function jobUpdateHalted({ name, version, readyVersion }: JobRow): RefusalError {
  const runs =
    readyVersion === null ? "no version of it became ready" : `version ${readyVersion} was the last to become ready`;
  const text =
    `the update of job ${name} to version ${version} halted, and a restart would start that version; ${runs}: revert ` +
    "the job, or submit it again to try a new version";
  const ready = readyVersion === null ? {} : { readyVersion: String(readyVersion) };
  return refuse("JOB_UPDATE_HALTED", text, {
    metadata: { job: name, version: String(version), ...ready },
    subject: name,
  });
}

/** The refusal to stop, scale or restart a job that has ended. */
export function jobEnded(name: string, state: JobRow["state"], edit: JobEditKind | "JOB_REVERTED"): RefusalError {
  const isStop = edit === "JOB_STOPPED";
  const again = isStop ? "" : "; submit it again to run it again";
  const text = `job ${name} has already ended: it is ${stateWords(state)}${again}`;
  return refuse("JOB_ENDED", text, { metadata: { job: name, state }, subject: name });
}

/** The refusal to delete a job that is kept running. */
export function jobActive(name: string): RefusalError {
  const text = `job ${name} is ACTIVE: stop it before you delete it`;
  return refuse("JOB_ACTIVE", text, { metadata: { job: name }, subject: name });
}

/** The refusal to delete a job whose executions may still run. */
export function jobNotEnded(name: string, executions: number): RefusalError {
  const what = executions === 1 ? "1 execution" : `${executions} executions`;
  const text =
    `${what} of job ${name} may still run: delete the job when their nodes have confirmed that they ended, or ` +
    "first delete " +
    "the nodes that are gone for good";
  return refuse("JOB_NOT_ENDED", text, { metadata: { job: name, executions: String(executions) }, subject: name });
}

/**
 * The refusal to revert a job: either the given version is no longer kept, or no version was given and no earlier
 * version became ready.
 *
 * @param kept the kept versions, newest first.
 */
export function jobVersionNotFound(name: string, version: number | null, kept: readonly number[]): RefusalError {
  const text =
    version === null
      ? `job ${name} has no earlier version with a different specification that became ready: name the version to ` +
        "revert to"
      : `job ${name} has no version ${version}${kept.length === 0 ? "" : `; it has ${rangesText(kept)}`}`;
  const metadata = { job: name, ...(version === null ? {} : { version: String(version) }) };
  return refuse("JOB_VERSION_NOT_FOUND", text, { metadata, subject: name });
}

/** Format descending numbers as ranges: 9-7, 5. */
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

/** The refusal to revert a job to a specification that its newest version already has. */
export function jobVersionIsNewest({ name, version }: JobRow, wanted: number, origin: number): RefusalError {
  const same = wanted === version ? "" : `, which has the specification of version ${origin}`;
  const text = `job ${name} is at version ${version}${same}: name another version to revert to`;
  return refuse("JOB_VERSION_IS_NEWEST", text, {
    metadata: { job: name, version: String(version) },
    subject: name,
  });
}

/** Refuse to change a job that has changed since the caller read it. */
export function checkJobEtag(job: Pick<JobRow, "name" | "etag"> | null, name: string, etag: string): void {
  if (etag === "" || job?.etag === etag) return;
  const text = job === null ? `job ${name} no longer exists` : `job ${name} has changed: read it again and retry`;
  throw refuse("ETAG_MISMATCH", text, { metadata: { job: name } });
}

/** The refusal to submit another job when the maximum number of jobs exists. */
export function tooManyJobs(): RefusalError {
  return refuse("TOO_MANY_JOBS", `the limit of ${MOST_JOBS} jobs is reached`, {
    metadata: { most: String(MOST_JOBS) },
  });
}
