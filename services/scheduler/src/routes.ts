import type { ConnectRouter } from "@connectrpc/connect";
import { JobService } from "@rollcall/api/rollcall/scheduler/v1/job_pb";
import { definePolicies, type MethodPolicy, type PolicyTable } from "@rollcall/rpc";
import type { EventFeed } from "@rollcall/store";
import { explainExecution } from "./executions/explain-execution.ts";
import { adoptExecution, stopExecution } from "./executions/order-execution.ts";
import { getExecution, listExecutions } from "./executions/read-executions.ts";
import { deleteJob, restartJob, revertJob, scaleJob, stopJob } from "./jobs/change-job.ts";
import { listOwners } from "./jobs/list-owners.ts";
import { planJob } from "./jobs/plan-job.ts";
import { getOneJob, listJobs, listJobVersions } from "./jobs/read-jobs.ts";
import { submitJob } from "./jobs/submit-job.ts";
import type { SchedulerServices } from "./scheduler-services.ts";
import { watchExecutions } from "./watch/watch-executions.ts";
import { watchJobs } from "./watch/watch-jobs.ts";

/** The services of the scheduler. */
export const SERVICES = [JobService];

/**
 * The policy of calls that change something. Without a request id, a repeated call is refused or restarts
 * again, so clients must not retry it automatically.
 */
const CHANGE: MethodPolicy = { caller: "submitter", deadlineMs: 30_000, idempotent: false };
const READING: MethodPolicy = { caller: "viewer", deadlineMs: 10_000, idempotent: true };
/**
 * The policy of calls that plan. The first call may have to read all nodes. Later calls know from the log
 * which nodes have changed.
 */
const PLANNING: MethodPolicy = { ...READING, deadlineMs: 30_000, readsLog: true };
const WATCHING: MethodPolicy = { caller: "viewer", deadlineMs: 0, idempotent: true };

/** Who can call each method, for how long, and whether a client can retry it automatically. */
export const POLICIES: PolicyTable = definePolicies(JobService, {
  submitJob: { ...CHANGE, readsLog: true },
  planJob: PLANNING,
  getJob: READING,
  listJobs: READING,
  watchJobs: WATCHING,
  scaleJob: CHANGE,
  restartJob: CHANGE,
  revertJob: { ...CHANGE, readsLog: true },
  stopJob: CHANGE,
  deleteJob: CHANGE,
  listJobVersions: READING,
  listExecutions: READING,
  getExecution: READING,
  explainExecution: PLANNING,
  stopExecution: CHANGE,
  adoptExecution: CHANGE,
  listOwners: { ...READING, caller: "admin" },
  watchExecutions: WATCHING,
});

/** Serve jobs, one line per method. */
export function createRoutes(
  services: SchedulerServices & { readonly feed: EventFeed },
): (router: ConnectRouter) => void {
  return (router) => {
    router.service(JobService, {
      submitJob: submitJob(services),
      planJob: planJob(services),
      getJob: getOneJob(services),
      listJobs: listJobs(services),
      watchJobs: watchJobs(services),
      scaleJob: scaleJob(services),
      restartJob: restartJob(services),
      revertJob: revertJob(services),
      stopJob: stopJob(services),
      deleteJob: deleteJob(services),
      listJobVersions: listJobVersions(services),
      listExecutions: listExecutions(services),
      getExecution: getExecution(services),
      explainExecution: explainExecution(services),
      stopExecution: stopExecution(services),
      adoptExecution: adoptExecution(services),
      listOwners: listOwners(services),
      watchExecutions: watchExecutions(services),
    });
  };
}
