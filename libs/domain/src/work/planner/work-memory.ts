import type { Execution, Observation } from "../execution.ts";
import type { Drain, Job } from "../job.ts";
import type { Plan, PlanInput } from "../plan.ts";
import type { WorkNode } from "../work-node.ts";
import { finishPlan, hasRoom, type PlanContext, planContext, scanNow, takeDue } from "./plan-context.ts";
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

/**
 * Maximum number of rounds in one plan. Each change can lead to another; further rounds are left to the next plan.
 */
const MOST_ROUNDS = 20;

/**
 * The scheduler's knowledge of nodes, jobs, drains and executions. The apply functions update it from the store, and
 * change nothing if it is up to date.
 *
 * To initialize the memory, first apply all nodes, jobs and drains. Then apply every execution that holds resources
 * or has no final state, and the newest execution of each replica of ACTIVE jobs.
 */
export class WorkMemory {
  readonly #state: WorkState = workState();

  applyNode(node: WorkNode): void {
    putNode(this.#state, node);
  }

  /** Remove a node that was deleted or has left permanently. */
  removeNode(nodeId: string): void {
    dropNode(this.#state, nodeId);
  }

  applyJob(job: Job): void {
    putJob(this.#state, job);
  }

  /** Remove a job that was deleted with all its executions. */
  removeJob(name: string): void {
    dropJob(this.#state, name);
  }

  applyExecution(execution: Execution, observation: Observation | null): void {
    putExecution(this.#state, execution, observation);
  }

  /**
   * Apply a node's report about an execution. Reports about executions that have ended and hold no resources are
   * ignored.
   */
  applyObservation(executionId: string, observation: Observation): void {
    putObservation(this.#state, executionId, observation);
  }

  applyDrain(drain: Drain): void {
    putDrain(this.#state, drain);
  }

  /** Remove a drain that was cancelled, or whose node is eligible again. */
  removeDrain(nodeId: string): void {
    dropDrain(this.#state, nodeId);
  }

  /** The planner's state. Callers must not change it. */
  get state(): WorkState {
    return this.#state;
  }

  /**
   * Decide what to do now. The memory changes as if the plan were committed. If the plan is not committed, call
   * revert().
   */
  plan(input: PlanInput): Plan {
    const context = planContext(this.#state, input);
    forgetEnded(this.#state);
    scanDue(context);
    calmNodes(context);
    retryWaiting(context);
    for (let round = 0; round < MOST_ROUNDS; round += 1) {
      const isWhole = planRound(context);
      if (!isWhole) return finishPlan(context, true);
      // Retry replicas that wait, because executions that ended in this plan may have made room for them.
      if (isQuiet(context)) retryWaiting(context);
      if (isQuiet(context)) return finishPlan(context, false);
    }
    return finishPlan(context, true);
  }

  /** Undo a plan that was not committed. If there are several plans to undo, revert the newest first. */
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

/** Forget everything about ended jobs except their executions on nodes. */
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

function scanDue(context: PlanContext): void {
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

/** Update nodes whose time as disturbed has passed. */
function calmNodes(context: PlanContext): void {
  const { state, nowMs } = context;
  for (const id of state.disturbed) {
    const node = state.pool.get(id)?.node;
    if (node === undefined || node.disturbedUntilMs === null) continue;
    if (node.disturbedUntilMs <= nowMs) state.pool.put({ ...node, disturbedUntilMs: null });
    else scanNow(context, { atMs: node.disturbedUntilMs, kind: "node", name: id, index: null });
  }
  state.disturbed.clear();
}

/** Review each marked item once. Returns false if the plan is full. */
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

/** If nodes have gained resources, mark for review the jobs and drains that found no node. */
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
