export { deleteJobIn } from "./jobs/delete-job.ts";
export { editJobIn, type JobOrder, stopJobIn } from "./jobs/edit-job.ts";
export { jobNotFound, jobStopped } from "./jobs/job-refusals.ts";
export { autoRevertJob, decideRevertIn, type RevertOrder, revertJobIn } from "./jobs/revert-job.ts";
export { type AcceptedJob, acceptJob, checkSubmission, type SubmittedJob, submitJobIn } from "./jobs/submit-job.ts";
export {
  type AnswerCodec,
  auditOf,
  bearerIn,
  commit,
  messageCodec,
  type Operation,
  readOperation,
} from "./operation.ts";
