export { deleteJobIn } from "./jobs/delete-job.ts";
export { editJobIn, type JobOrder, stopJobIn } from "./jobs/edit-job.ts";
export { holdAllToQuota } from "./jobs/hold-to-quota.ts";
export { jobNotFound, jobStopped, jobUpdateHalted } from "./jobs/job-refusals.ts";
export { autoRevertJob, decideRevertIn, type RevertOrder, revertJobIn } from "./jobs/revert-job.ts";
export {
  type AcceptedJob,
  acceptJob,
  checkSubmission,
  isSubmitted,
  type SubmittedJob,
  submitJobIn,
} from "./jobs/submit-job.ts";
export {
  type AnswerCodec,
  auditOf,
  commit,
  messageCodec,
  type Operation,
  readOperation,
  rehearse,
} from "./operation.ts";
