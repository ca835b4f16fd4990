export { type ChangePosition, type Changes, changePosition } from "./changes.ts";
export {
  commitWork,
  type ExecutionChange,
  type JobFinding,
  MOST_EXECUTIONS_OF_NODE,
  type NewExecution,
  type Orphan,
  type WorkCommit,
  type WorkCommitted,
} from "./commit-work.ts";
export { beginWaitingDrains, endCordons, endDrains } from "./drain-progress.ts";
export {
  type DrainingExecution,
  type DrainRecord,
  type DrainWork,
  getDrain,
  getDrains,
  listDrains,
  readDrainWork,
} from "./drains.ts";
export { readSpecs, type SpecRecord, saveSpec } from "./execution-specs.ts";
export {
  type ExecutionFilter,
  type ExecutionRecord,
  type ExecutionTally,
  findExecutions,
  getExecutions,
  lockExecution,
  type ObservationRecord,
  readChangedExecutions,
  readExecutions,
  readLiveExecutions,
  saveExecutionOrder,
  tallyExecutions,
} from "./executions.ts";
export {
  countJobs,
  getJob,
  getJobs,
  getJobVersions,
  type JobEdit,
  type JobFilter,
  type JobRecord,
  type JobVersionRecord,
  jobFactsOf,
  lockJob,
  lockJobName,
  type NewJobVersion,
  readJobs,
  readJobVersions,
  saveJobEdit,
  saveJobVersion,
} from "./jobs.ts";
export {
  type NodeWork,
  type NodeWorkQuery,
  readChangedNodeWork,
  readForgettable,
  readNodeWork,
  WORK_CHANNEL,
  type WorkReference,
} from "./node-work.ts";
export {
  type NodeReport,
  OBSERVED_CHANNEL,
  type ReportedExecution,
  readObservedIds,
  readUnknownExecutions,
  saveObservations,
  type UnknownExecution,
} from "./observations.ts";
export { hasSchedulerLed, holdSchedulerLease, SCHEDULER_LEASE, SCHEDULER_LEASE_TIMING } from "./scheduler-lease.ts";
export {
  type AllocationRecord,
  ensureAllocations,
  readAllocations,
  readComputeNodeIds,
  readWorkNodes,
  type WorkNode,
} from "./work-nodes.ts";
export type { ExecutionOrder, JobState, StoredState } from "./work-tables.ts";
