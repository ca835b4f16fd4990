export type { ExecutionOrder, ExecutionRowState } from "../database/tables/work.ts";
export { type ChangePosition, type Changes, changePosition, WORK_CHANNEL, WorkSignals } from "./changes.ts";
export { commitWork, type PlannedJob, type WorkCommit, type WorkCommitted } from "./commit-work.ts";
export { compactWork, type WorkRetention } from "./compact-work.ts";
export { beginWaitingDrains, endCordons, endDrains } from "./drain-progress.ts";
export { type DrainRow, type DrainWork, getDrain, getDrains, listDrains, readDrainWork } from "./drains.ts";
export { readSpecs, type SpecRow, saveSpec } from "./execution-specs.ts";
export {
  type ExecutionFilter,
  type ExecutionRow,
  type ExecutionTally,
  executionNotFound,
  findExecutions,
  getExecutions,
  greatestExecutionId,
  lockExecution,
  type ObservationRow,
  readChangedExecutions,
  readExecutions,
  readExecutionsOfJob,
  readLiveExecutions,
  readLiveOnNodes,
  readNewestEnded,
  saveExecutionOrder,
  tallyExecutions,
} from "./executions.ts";
export {
  countJobs,
  countOpenExecutions,
  deleteJob,
  getJob,
  getJobs,
  getJobVersion,
  type JobEdit,
  type JobRow,
  type JobVersionRow,
  lockJob,
  lockJobName,
  lockJobs,
  readJobOwners,
  readJobs,
  readJobsWaitingOnNodes,
  readJobVersionHeads,
  readJobVersions,
  saveHalted,
  saveJobEdit,
  saveJobVersion,
} from "./jobs.ts";
export {
  type NodeWork,
  type NodeWorkQuery,
  nodeOfExecution,
  readChangedNodeWork,
  readForgettable,
  readNodeWork,
  type WorkReference,
} from "./node-work.ts";
export {
  type NodeReport,
  type ReportedExecution,
  readObservedIds,
  readUnknownExecutions,
  readUnsettledIds,
  type SavedReports,
  saveObservations,
  type UnknownExecution,
} from "./observations.ts";
export { type HomelessOrphan, readHomelessOrphans } from "./orphans.ts";
export { lockOwner, type OwnerRow, readOwners, readOwnerUsage } from "./owner-usage.ts";
export { hasSchedulerLed, noteSchedulerLeads, SCHEDULER_LEASE, SCHEDULER_LEASE_TIMING } from "./scheduler-lease.ts";
export { MOST_EXECUTIONS_OF_NODE } from "./take-from-nodes.ts";
export { type AllocationRow, ensureAllocations, readAllocations, readComputeNodeIds } from "./work-nodes.ts";
