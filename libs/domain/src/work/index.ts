export { type CheckedJob, checkJob, type KeptJob, keptJob, MOST_JOB_EXECUTIONS, MOST_SPEC_BYTES } from "./check-job.ts";
export type { JobViolation } from "./check-task.ts";
export type {
  Desired,
  EndReason,
  ExecutionRecord,
  ExecutionState,
  Grant,
  Observation,
  Observed,
  RecordedState,
  TerminalState,
} from "./execution.ts";
export { EXECUTION_ID_PATTERN, ExecutionIds, executionIdTimeMs } from "./execution-id.ts";
export {
  type ExecutionReason,
  isTerminal,
  mayFollow,
  settleGone,
  settleOrphan,
  shownState,
  stopRevived,
} from "./execution-state.ts";
export { refusalsText, refusalText } from "./explain.ts";
export type {
  DraftCheck,
  DraftConstraints,
  DraftContainer,
  DraftProbe,
  DraftProcess,
  DraftResources,
  DraftTask,
  JobDraft,
} from "./job-draft.ts";
export type { DrainRecord, JobRecord, JobState } from "./job-record.ts";
export {
  JOB_TYPES,
  type JobSpec,
  type JobType,
  type LossPolicy,
  type NodeConstraints,
  type Resources,
  type RetryPolicy,
  type UpdatePolicy,
} from "./job-spec.ts";
export { NO_OVERCOMMIT, type PlacedNode, toWorkNode } from "./node-work.ts";
export type { PlacementReason } from "./placement/node-class.ts";
export { MOST_NODE_EXECUTIONS } from "./placement/pool-node.ts";
export type { RefusalCount, Refusals } from "./placement/refusals.ts";
export type { DrainChange, ExecutionChange, ExecutionChangeKind, JobChange, Plan, PlanInput } from "./plan.ts";
export {
  type ExplainedRefusal,
  explainJob,
  type JobExplanation,
  type JobPreview,
  type PreviewedPlace,
  previewJob,
} from "./planner/explain-job.ts";
export { MOST_PLACED } from "./planner/plan-context.ts";
export { WorkMemory } from "./planner/work-memory.ts";
export {
  goneObservation,
  type RecordedExecution,
  type ReportedExecution,
  type SettledReport,
  settleReport,
} from "./settle-report.ts";
export type { AllocatableFactors, NodeCapacity, NodeGpu, WorkHold, WorkNode } from "./work-node.ts";
