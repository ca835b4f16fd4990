import type { JobSpec as SubmittedSpec } from "@rollcall/api/rollcall/work/v1/work_pb";
import { checkJob, type JobSpec, jobSubmittedEvent } from "@rollcall/domain";
import {
  type Change,
  countJobs,
  type Db,
  lockJob,
  lockJobName,
  type StoredJob,
  saveJobEdit,
  saveJobVersion,
  saveSpec,
  type Tx,
} from "@rollcall/store";
import { executionSpecOf, isSameJob, jobToText, toJobDraft } from "@rollcall/wire";
import { auditOf, type Operation } from "../operation.ts";
import { holdToQuota } from "./hold-to-quota.ts";
import { checkJobEtag, invalidJob, MOST_JOBS, tooManyJobs } from "./job-refusals.ts";

/** A job that can be kept. */
export interface AcceptedJob {
  /** As it was submitted. */
  readonly submitted: SubmittedSpec;
  /** With what it leaves out filled in. */
  readonly spec: JobSpec;
  /** What deserves a second look. */
  readonly warnings: readonly string[];
}

/** What happened to a job that was submitted. */
export interface SubmittedJob {
  readonly job: StoredJob;
  /** Whether it was not so already. */
  readonly changed: boolean;
}

/** Check a job that an owner submits. Throws INVALID_JOB with all that is wrong. */
export function acceptJob(submitted: SubmittedSpec | undefined, owner: string): AcceptedJob {
  if (submitted === undefined) throw invalidJob([{ field: "", message: "is required" }]);
  const checked = checkJob(toJobDraft(submitted, owner));
  if (!checked.ok) throw invalidJob(checked.violations);
  const { spec, warnings } = checked;
  return { submitted, spec, warnings };
}

/** Check that a job can be submitted over the one of that name. Throws ETAG_MISMATCH or TOO_MANY_JOBS. */
export async function checkSubmission(db: Db, before: StoredJob | null, name: string, etag: string): Promise<void> {
  checkJobEtag(before, name, etag);
  if (before === null && (await countJobs(db)) >= MOST_JOBS) throw tooManyJobs();
}

/**
 * Make a job, or a new version of it; one that is over starts again. Nothing is done for one that is so already. Throws
 * ETAG_MISMATCH, TOO_MANY_JOBS or QUOTA_EXCEEDED.
 *
 * @param etag empty for a job in whatever state it is.
 */
export async function submitJobIn(
  tx: Tx,
  operation: Operation,
  { submitted, spec }: Pick<AcceptedJob, "submitted" | "spec">,
  etag: string,
): Promise<Change<SubmittedJob>> {
  const { name } = spec;
  await lockJobName(tx, name);
  const before = await lockJob(tx, name);
  await checkSubmission(tx, before, name, etag);
  const text = jobToText(submitted, spec.count);
  const isSame = before !== null && isSameJob(before.spec, text);
  const isOver = before !== null && before.state !== "ACTIVE";
  const audit = [auditOf(operation, name)];
  if (isSame && !isOver && before.count === spec.count) {
    return { result: { job: before, changed: false }, events: [], audit };
  }
  const { actor, message: reason } = operation.by;
  const after = await holdToQuota(tx, operation, isSame ? before.actor : actor, async () => {
    const { type, count } = spec;
    if (isSame) return saveJobEdit(tx, name, { isNewRun: isOver, count, spec: text, state: "ACTIVE" });
    const version = (before?.version ?? 0) + 1;
    const { digest, bytes } = executionSpecOf(submitted, version, actor);
    await saveSpec(tx, digest, bytes);
    return saveJobVersion(tx, {
      ...{ name, type, version, count, spec: text, specDigest: digest, actor, reason, isNewRun: isOver },
      ...{ millicores: spec.resources.millicores, isOneNode: spec.constraints.nodeId !== null },
    });
  });
  const event = jobSubmittedEvent({ name, type: spec.type, before, after, by: operation.by });
  return { result: { job: after, changed: true }, events: [event], audit };
}
