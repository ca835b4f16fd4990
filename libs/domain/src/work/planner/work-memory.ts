import type { ExecutionRecord, Observation } from "../execution.ts";
import type { DrainRecord, JobRecord } from "../job-record.ts";
import type { Plan, PlanInput } from "../plan.ts";
import type { WorkNode } from "../work-node.ts";
import { finishPlan, hasRoom, lookAt, type PlanContext, planContext, takeDue } from "./plan-context.ts";
import { planDrain } from "./plan-drain.ts";
import { canRetry, planJob } from "./plan-job.ts";
import { settleExecution } from "./settle-execution.ts";
import {
  dropDrain,
  dropExecution,
  dropJob,
  dropNode,
  dropPlace,
  putDrain,
  putExecution,
  putJob,
  putNode,
  putObservation,
  touchJob,
} from "./work-index.ts";
import { type WorkState, workState } from "./work-state.ts";

/** Rounds in which one change of a plan leads to another, at most; what is left is planned next. */
const MOST_ROUNDS = 20;

/**
 * What the scheduler knows of work: nodes, jobs, drains and executions. The apply functions take what the record has
 * now, and do nothing when it is known already.
 *
 * To begin with, apply all nodes, jobs and drains; then every execution that holds resources or has no final state; and
 * of jobs that are ACTIVE the newest execution of each place.
 */
export class WorkMemory {
  readonly #state: WorkState = workState();

  applyNode(node: WorkNode): void {
    putNode(this.#state, node);
  }

  /** The node is deleted, or left for good. */
  removeNode(nodeId: string): void {
    dropNode(this.#state, nodeId);
  }

  applyJob(job: JobRecord): void {
    putJob(this.#state, job);
  }

  /** The job is gone from the record, with all its executions. */
  removeJob(name: string): void {
    dropJob(this.#state, name);
  }

  applyExecution(execution: ExecutionRecord, observation: Observation | null): void {
    putExecution(this.#state, execution, observation);
  }

  /** What a node said of an execution. One that holds nothing and has ended is not known any more. */
  applyObservation(executionId: string, observation: Observation): void {
    putObservation(this.#state, executionId, observation);
  }

  applyDrain(drain: DrainRecord): void {
    putDrain(this.#state, drain);
  }

  /** The drain was cancelled, or its node is eligible again. */
  removeDrain(nodeId: string): void {
    dropDrain(this.#state, nodeId);
  }

  /** For reading alone: what is known. */
  get state(): WorkState {
    return this.#state;
  }

  /** Decide what to do now. The memory has it as done; when it is not committed, revert it. */
  plan(input: PlanInput): Plan {
    const context = planContext(this.#state, input);
    forgetEnded(this.#state);
    lookAtDue(context);
    calmNodes(context);
    retryWaiting(context);
    for (let round = 0; round < MOST_ROUNDS; round += 1) {
      const isWhole = planRound(context);
      if (!isWhole) return finishPlan(context, true);
      // What ended in this plan may have made room for what waits.
      if (isQuiet(context)) retryWaiting(context);
      if (isQuiet(context)) return finishPlan(context, false);
    }
    return finishPlan(context, true);
  }

  /** Take back what was planned and not committed. Plans are reverted in the opposite order. */
  revert(plan: Pick<Plan, "executions" | "jobs" | "drains">): void {
    const state = this.#state;
    for (const { before } of plan.jobs) putJob(state, before);
    for (const { before } of plan.drains) putDrain(state, before);
    for (const { before, after, observation: planned } of plan.executions) {
      const observation = state.executions.get(after.id)?.observation ?? planned;
      if (before === null) {
        dropExecution(state, after.id);
      } else {
        putExecution(state, before, observation);
        state.dirtyExecutions.add(before.id);
      }
      const job = state.jobs.get(after.job);
      if (job !== undefined) touchJob(state, job);
    }
  }
}

/** Of a job that has ended, nothing but its executions on nodes is kept. */
function forgetEnded(state: WorkState): void {
  for (const name of state.endedJobs) {
    const job = state.jobs.get(name);
    if (job === undefined) continue;
    for (const place of [...job.places.values()]) if (place.executions.length === 0) dropPlace(job, place);
    for (const set of [job.todo, job.waiting, job.nodesToCheck]) set.clear();
    job.failures.clear();
    job.search = null;
    state.waitingJobs.delete(name);
  }
  state.endedJobs.clear();
}

function lookAtDue(context: PlanContext): void {
  const { state } = context;
  for (let due = takeDue(context); due !== undefined; due = takeDue(context)) {
    if (due.kind === "node") {
      state.disturbed.add(due.name);
      continue;
    }
    if (due.kind === "drain") {
      if (state.drains.has(due.name)) state.dirtyDrains.add(due.name);
      continue;
    }
    const job = state.jobs.get(due.name);
    if (job === undefined) continue;
    if (due.index !== null) job.todo.add(due.index);
    touchJob(state, job);
  }
}

/** Nodes count as disturbed until a time only. */
function calmNodes(context: PlanContext): void {
  const { state, nowMs } = context;
  for (const id of state.disturbed) {
    const node = state.pool.get(id)?.node;
    if (node === undefined || node.disturbedUntilMs === null) continue;
    if (node.disturbedUntilMs <= nowMs) state.pool.put({ ...node, disturbedUntilMs: null });
    else lookAt(context, { atMs: node.disturbedUntilMs, kind: "node", name: id, index: null });
  }
  state.disturbed.clear();
}

/** One round over all there is to look at; false when the plan is full. */
function planRound(context: PlanContext): boolean {
  const { state } = context;
  for (const id of state.dirtyExecutions) {
    if (!hasRoom(context)) return false;
    state.dirtyExecutions.delete(id);
    const known = state.executions.get(id);
    if (known !== undefined) settleExecution(context, known);
  }
  for (const nodeId of state.dirtyDrains) {
    state.dirtyDrains.delete(nodeId);
    const drain = state.drains.get(nodeId);
    if (drain !== undefined && !planDrain(context, drain)) {
      state.dirtyDrains.add(nodeId);
      return false;
    }
  }
  for (const name of state.dirtyJobs) {
    state.dirtyJobs.delete(name);
    const job = state.jobs.get(name);
    if (job !== undefined && !planJob(context, job)) {
      state.dirtyJobs.add(name);
      return false;
    }
  }
  return true;
}

/** Look again at what found no node, if there is something new to try. */
function retryWaiting(context: PlanContext): void {
  const { state } = context;
  for (const name of state.waitingJobs) {
    const job = state.jobs.get(name);
    if (job === undefined) state.waitingJobs.delete(name);
    else if (canRetry(context, job)) touchJob(state, job);
  }
  if (state.stuckGains === state.pool.gains) return;
  state.stuckGains = state.pool.gains;
  for (const nodeId of state.stuckDrains) state.dirtyDrains.add(nodeId);
}

function isQuiet(context: PlanContext): boolean {
  const { dirtyExecutions, dirtyDrains, dirtyJobs } = context.state;
  return dirtyExecutions.size + dirtyDrains.size + dirtyJobs.size === 0;
}
