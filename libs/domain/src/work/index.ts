export type { WorkResource } from "../conditions/hardware.ts";
export { boundUnknown, FIRST_UNKNOWN_OF_NODE, MOST_UNKNOWN, MOST_UNKNOWN_OF_NODE } from "./bounds/bound-unknown.ts";
export { type ExceededQuota, exceededQuota, type OwnerQuota, type OwnerUsage } from "./bounds/owner-quota.ts";
export { checkJob, type RecheckedJob, recheckJob } from "./check-job.ts";
export {
  autoRevertTo,
  decideRevert,
  type JobDeletionRefusal,
  type JobEditKind,
  type JobVersionHead,
  MOST_JOB_VERSIONS,
  type RevertDecision,
  refuseJobDeletion,
  refuseJobEdit,
  refusesRestart,
  revertedCount,
} from "./edit-job.ts";
export type {
  Desired,
  EndReason,
  Execution,
  ExecutionState,
  Grant,
  Observation,
  Observed,
  StoredState,
} from "./execution.ts";
export { EXECUTION_ID_PATTERN, ExecutionIds, executionIdTimeMs } from "./execution-id.ts";
export {
  isEndSeen,
  isNewer,
  isTerminal,
  settleGone,
  settleOrphan,
  shownState,
  stopRevived,
} from "./execution-state.ts";
export { refusalsText } from "./explain.ts";
export type { Job, JobState, VersionSpec } from "./job.ts";
export type { DraftCheck, DraftTask, JobDraft } from "./job-draft.ts";
export { JOB_TYPES, type JobSpec, type JobType, type Resources } from "./job-spec.ts";
export { NO_OVERCOMMIT, type PlacedNode, toWorkNode } from "./node-work.ts";
export {
  gapBefore,
  type LineSearch,
  type OutputGap,
  type OutputPosition,
  searchLines,
  searchPiece,
} from "./output-lines.ts";
export type { Refusals } from "./placement/refusals.ts";
export { canUseSecret, isSecretGrant, type NodeSecret, type SecretUser } from "./placement/secret-grants.ts";
export type { ExecutionChange, JobChange, Plan, PlanInput } from "./plan.ts";
export { adoptedIndex } from "./planner/adopted-index.ts";
export {
  type ExplainedRefusal,
  explainJob,
  type JobExplanation,
  type JobPreview,
  previewJob,
} from "./planner/explain-job.ts";
export { explainWaits, type WaitScope } from "./planner/explain-waits.ts";
export { MOST_PLACED } from "./planner/plan-context.ts";
export type { WaitFacts } from "./planner/wait-context.ts";
export { WorkMemory } from "./planner/work-memory.ts";
export { isOutdated } from "./planner/work-state.ts";
export { followClock, notAfter, type PlanningTime } from "./planning-time.ts";
export { failuresInRow, isFailure, ranMsOf } from "./retry-replica.ts";
export type { Wait } from "./wait.ts";
export { isUsableGpu, type WorkNode } from "./work-node.ts";
