import type { ExecutionRecord, Observation } from "./execution.ts";
import type { DrainRecord, JobRecord } from "./job-record.ts";
import type { Plan, PlanInput } from "./plan.ts";
import type { WorkNode } from "./work-node.ts";

/**
 * What the scheduler's shell does with the memory of work. All apply functions take what the record has now, in any
 * order, and do nothing when it is known already.
 *
 * To begin with, apply all nodes, jobs and drains, every execution that holds resources or has no final state, and of
 * jobs that are ACTIVE the newest execution of each place.
 */
export interface WorkShell {
  applyNode(node: WorkNode): void;
  /** The node is deleted, or left for good. */
  removeNode(nodeId: string): void;
  applyJob(job: JobRecord): void;
  removeJob(name: string): void;
  applyExecution(execution: ExecutionRecord, observation: Observation | null): void;
  applyObservation(executionId: string, observation: Observation): void;
  applyDrain(drain: DrainRecord): void;
  removeDrain(nodeId: string): void;
  /** Decide what is to be done now. The memory has it as done; when it was not committed, revert it. */
  plan(input: PlanInput): Plan;
  /** Take back what was planned and not committed. Plans are reverted in the opposite order. */
  revert(plan: Plan): void;
}
