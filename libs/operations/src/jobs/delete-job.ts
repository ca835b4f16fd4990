import { jobDeletedEvent, refuseJobDeletion } from "@rollcall/domain";
import { type Change, countOpenExecutions, deleteJob, type JobRow, lockJob, type Tx } from "@rollcall/store";
import { auditOf, type Operation } from "../operation.ts";
import { checkJobEtag, jobActive, jobNotEnded, jobNotFound } from "./job-refusals.ts";

/** Delete a job that has ended. Throws JOB_NOT_FOUND, ETAG_MISMATCH, JOB_ACTIVE or JOB_NOT_ENDED. */
export async function deleteJobIn(
  tx: Tx,
  operation: Operation,
  { name, etag }: { readonly name: string; readonly etag: string },
): Promise<Change<JobRow>> {
  const job = await lockJob(tx, name);
  if (job === null) throw await jobNotFound(tx, name);
  checkJobEtag(job, name, etag);
  const open = job.state === "ACTIVE" ? 0 : await countOpenExecutions(tx, name);
  const refusal = refuseJobDeletion(job.state, open);
  if (refusal === "JOB_ACTIVE") throw jobActive(name);
  if (refusal === "JOB_NOT_ENDED") throw jobNotEnded(name, open);
  await deleteJob(tx, name);
  const event = jobDeletedEvent(name, job, operation.by);
  return { result: job, events: [event], audit: [auditOf(operation, name)] };
}
