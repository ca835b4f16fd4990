import { type JobEditKind, type JobFacts, jobChangedEvent, refuseJobEdit } from "@rollcall/domain";
import { type Change, type JobEdit, lockJob, type StoredJob, saveJobEdit, type Tx } from "@rollcall/store";
import { auditOf, type Operation } from "../operation.ts";
import { holdToQuota } from "./hold-to-quota.ts";
import { checkJobEtag, jobEnded, jobNotFound, jobStopped } from "./job-refusals.ts";

/** A job that is to change, and why. */
export interface JobOrder {
  readonly name: string;
  /** Empty for a job in whatever state it is. */
  readonly etag: string;
  readonly reason: JobEditKind;
}

/**
 * Change a job in whose state that is possible; null of `decide` means that it is so already. Throws JOB_NOT_FOUND,
 * ETAG_MISMATCH, JOB_STOPPED, JOB_ENDED or QUOTA_EXCEEDED.
 */
export async function editJobIn(
  tx: Tx,
  operation: Operation,
  { name, etag, reason }: JobOrder,
  decide: (job: StoredJob) => JobEdit | null,
): Promise<Change<StoredJob>> {
  const before = await lockJob(tx, name);
  if (before === null) throw await jobNotFound(tx, name);
  checkJobEtag(before, name, etag);
  const refusal = refuseJobEdit(before.state);
  if (refusal === "JOB_STOPPED") throw jobStopped(name);
  if (refusal === "JOB_ENDED") throw jobEnded(name, before.state, reason);
  const wanted = decide(before);
  const after =
    wanted === null ? before : await holdToQuota(tx, operation, before.actor, () => saveJobEdit(tx, name, wanted));
  const { actor, message } = operation.by;
  const facts = { name, before: factsOf(before), after: factsOf(after), reason, actor, message };
  return {
    result: after,
    events: wanted === null ? [] : [jobChangedEvent(facts)],
    audit: [auditOf(operation, name)],
  };
}

/** End all executions of a job. Throws JOB_NOT_FOUND, JOB_STOPPED or JOB_ENDED. */
export async function stopJobIn(tx: Tx, operation: Operation, name: string): Promise<Change<StoredJob>> {
  return editJobIn(tx, operation, { name, etag: "", reason: "JOB_STOPPED" }, () => ({ state: "STOPPED" }));
}

function factsOf({ state, version, count, halted }: StoredJob): JobFacts {
  return { state, version, count, halted };
}
