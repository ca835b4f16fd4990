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
export type { DrainChange, ExecutionChange, ExecutionChangeKind, JobChange, Plan, PlanInput } from "./plan.ts";
export type { AllocatableFactors, NodeCapacity, NodeGpu, WorkHold, WorkNode } from "./work-node.ts";
export type { WorkShell } from "./work-shell.ts";
