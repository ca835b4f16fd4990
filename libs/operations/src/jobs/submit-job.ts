import type { JobSpec as SubmittedSpec } from "@rollcall/api/rollcall/work/v1/work_pb";
import { checkJob, type JobSpec, jobSubmittedEvent } from "@rollcall/domain";
import {
  type Change,
  countJobs,
  type Db,
  type JobRow,
  lockJob,
  lockJobName,
  saveJobEdit,
  saveJobVersion,
  saveSpec,
  type Tx,
} from "@rollcall/store";
import { executionSpecOf, isSameJob, jobToText, toJobDraft } from "@rollcall/wire";
import { auditOf, type Operation } from "../operation.ts";
import { holdToQuota } from "./hold-to-quota.ts";
import { checkJobEtag, invalidJob, MOST_JOBS, tooManyJobs } from "./job-refusals.ts";

/** A valid job. */
export interface AcceptedJob {
  /** As submitted. */
  readonly submitted: SubmittedSpec;
  /** The specification, with defaults filled in. */
  readonly spec: JobSpec;
  readonly warnings: readonly string[];
}

/** The result of submitting a job. */
export interface SubmittedJob {
  readonly job: JobRow;
  /** Whether anything changed. */
  readonly changed: boolean;
}

/** Validate a job that an owner submits. Throws INVALID_JOB with all violations. */
export function acceptJob(submitted: SubmittedSpec | undefined, owner: string): AcceptedJob {
  if (submitted === undefined) throw invalidJob([{ field: "", message: "is required" }]);
  const checked = checkJob(toJobDraft(submitted, owner));
  if (!checked.ok) throw invalidJob(checked.violations);
  const { spec, warnings } = checked;
  return { submitted, spec, warnings };
}

/** Check that a job can be submitted, replacing any job of that name. Throws ETAG_MISMATCH or TOO_MANY_JOBS. */
export async function checkSubmission(db: Db, before: JobRow | null, name: string, etag: string): Promise<void> {
  checkJobEtag(before, name, etag);
  if (before === null && (await countJobs(db)) >= MOST_JOBS) throw tooManyJobs();
}

/**
 * Whether a job already has this specification, so that submitting it creates no new version. After an update that
 * halted, submitting the same specification tries it again as a new version.
 */
export function isSubmitted({ state, halted, spec }: JobRow, text: JobRow["spec"]): boolean {
  return (state !== "ACTIVE" || halted === null) && isSameJob(spec, text);
}

/**
 * Create a job or a new version of it. A job that has ended starts again. Does nothing when nothing changes. Throws
 * ETAG_MISMATCH, TOO_MANY_JOBS or QUOTA_EXCEEDED.
 *
 * @param etag empty to accept a job in any state.
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
  const isSame = before !== null && isSubmitted(before, text);
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
