import { type JobEditKind, type JobFacts, jobChangedEvent, refuseJobEdit } from "@rollcall/domain";
import { type Change, type JobEdit, type JobRow, lockJob, saveJobEdit, type Tx } from "@rollcall/store";
import { auditOf, type Operation } from "../operation.ts";
import { holdToQuota } from "./hold-to-quota.ts";
import { checkJobEtag, jobEnded, jobNotFound, jobStopped } from "./job-refusals.ts";

/** A job to change, and the conditions for the change. */
export interface JobOrder {
  readonly name: string;
  /** The etag that the job must have; empty to accept a job in any state. */
  readonly etag: string;
  readonly reason: JobEditKind;
}

/**
 * Change a job whose state allows it. `decide` returns null when nothing changes. Throws JOB_NOT_FOUND,
 * ETAG_MISMATCH, JOB_STOPPED, JOB_ENDED or QUOTA_EXCEEDED.
 */
export async function editJobIn(
  tx: Tx,
  operation: Operation,
  { name, etag, reason }: JobOrder,
  decide: (job: JobRow) => JobEdit | null,
): Promise<Change<JobRow>> {
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
export async function stopJobIn(tx: Tx, operation: Operation, name: string): Promise<Change<JobRow>> {
  return editJobIn(tx, operation, { name, etag: "", reason: "JOB_STOPPED" }, () => ({ state: "STOPPED" }));
}

function factsOf({ state, version, count, halted, waitingNodes }: JobRow): JobFacts {
  return { state, version, count, halted, waitingNodes };
}
