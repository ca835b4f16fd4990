import { DEFAULT_STOP_GRACE_MS } from "../check-job.ts";
import { isTerminal } from "../execution-state.ts";
import type { Drain } from "../job.ts";
import type { WorkNode } from "../work-node.ts";
import {
  changeDrain,
  changeExecution,
  endedPart,
  hasRoom,
  mayReact,
  type PlanContext,
  scanNow,
} from "./plan-context.ts";
import { replaceExecution, stopExecution } from "./plan-replica.ts";
import { inTransit, type LiveExecution, liveIn, placeOf } from "./work-state.ts";

/** How long after the grace period a forced drain waits for a node to confirm an end, in milliseconds. */
const CONFIRM_WITHIN_MS = 10_000;

/** Plan the next steps of a drain. Returns false if the plan has no room for all of them. */
export function planDrain(context: PlanContext, drain: Drain): boolean {
  const { nodeId, deadlineAtMs, force, ignoreDaemons } = drain;
  if (drain.state === "UNCONFIRMED" && !hasUnconfirmed(context, drain)) {
    changeDrain(context, drain, { state: "DRAINED" });
  }
  if (drain.state !== "DRAINING") return true;
  context.state.stuckDrains.delete(nodeId);
  const isLate = isPastDeadline(context, drain);
  const isOver = force || isLate;
  if (!isLate && deadlineAtMs !== null)
    scanNow(context, { atMs: deadlineAtMs, kind: "drain", name: nodeId, index: null });
  const here = executionsOn(context, nodeId);
  const others = here.filter((known) => !isDaemon(context, known));
  const daemons = ignoreDaemons ? [] : here.filter((known) => isDaemon(context, known));
  for (const known of others) {
    if (!hasRoom(context)) return false;
    if (isDead(context, drain, known)) endUnconfirmed(context, known);
    else endOne(context, known, isOver);
    awaitConfirmation(context, drain, known);
  }
  if (executionsOn(context, nodeId).some((known) => !isDaemon(context, known))) return true;
  for (const known of daemons) {
    if (isDead(context, drain, known)) endUnconfirmed(context, known);
    else stopExecution(context, known, "NODE_DRAINED");
    awaitConfirmation(context, drain, known);
  }
  const left = executionsOn(context, nodeId).filter((known) => !ignoreDaemons || !isDaemon(context, known));
  const state = hasUnconfirmed(context, drain) ? "UNCONFIRMED" : "DRAINED";
  if (left.length === 0) changeDrain(context, drain, { state });
  return true;
}

/** The executions on a node that have not ended. */
function executionsOn({ state }: PlanContext, nodeId: string): readonly LiveExecution[] {
  const ids = [...(state.byNode.get(nodeId) ?? [])];
  return ids.flatMap((id) => {
    const known = state.executions.get(id);
    return known === undefined || isTerminal(known.record.state) ? [] : [known];
  });
}

/** Whether the node may still run an execution whose end was recorded without its confirmation. */
function hasUnconfirmed(context: PlanContext, { nodeId, ignoreDaemons }: Drain): boolean {
  return [...(context.state.byNode.get(nodeId) ?? [])].some((id) => {
    const known = context.state.executions.get(id);
    if (known === undefined || !isTerminal(known.record.state) || !known.record.holds) return false;
    return !ignoreDaemons || !isDaemon(context, known);
  });
}

function isDaemon({ state }: PlanContext, { record }: LiveExecution): boolean {
  return state.jobs.get(record.job)?.record.spec.type === "daemon";
}

function isPastDeadline({ nowMs }: PlanContext, { deadlineAtMs }: Drain): boolean {
  return deadlineAtMs !== null && deadlineAtMs <= nowMs;
}

/**
 * Whether to stop waiting for a node to confirm the end of an execution. True if reactions to the node's loss are
 * allowed. In a forced drain, also true if the node cannot confirm, or has not confirmed in time after the deadline.
 */
function isDead(context: PlanContext, drain: Drain, known: LiveExecution): boolean {
  const node = context.state.pool.get(drain.nodeId)?.node;
  if (node === undefined) return false;
  if (node.reactionAllowed) return true;
  if (!drain.force) return false;
  return !canConfirm(node) || (isPastDeadline(context, drain) && confirmedByMs(context, known) <= context.nowMs);
}

/**
 * The time until which a node must confirm the end of an execution that it was ordered to stop; infinite without such
 * an order. The time is counted from when this planner first saw the order during the drain. That moment is not stored,
 * so a new leader waits again.
 */
function confirmedByMs({ state }: PlanContext, { record, stopSeenAtMs }: LiveExecution): number {
  if (record.desired !== "STOP" || stopSeenAtMs === null) return Number.POSITIVE_INFINITY;
  const graceMs = state.jobs.get(record.job)?.record.spec.stopGraceMs ?? DEFAULT_STOP_GRACE_MS;
  return stopSeenAtMs + graceMs + CONFIRM_WITHIN_MS;
}

/**
 * Record that a node was ordered to stop an execution, and schedule a review at the time when a forced drain stops
 * waiting.
 */
function awaitConfirmation(context: PlanContext, drain: Drain, known: LiveExecution): void {
  if (known.record.desired !== "STOP" || isTerminal(known.record.state)) return;
  known.stopSeenAtMs ??= context.nowMs;
  // Before the deadline, no review need be scheduled: the drain is reviewed at its deadline anyway.
  if (!drain.force || !isPastDeadline(context, drain)) return;
  scanNow(context, { atMs: confirmedByMs(context, known), kind: "drain", name: drain.nodeId, index: null });
}

/** Whether a node can confirm ends. A node that is away or has no executor cannot confirm them. */
function canConfirm({ health, connection, capacity }: WorkNode): boolean {
  return health === "HEALTHY" && connection === "CONNECTED" && capacity !== null && capacity.executors.length > 0;
}

/**
 * Record the end of an execution without its node's confirmation. The execution keeps its grant until the node
 * confirms. An execution that an operator stopped stays stopped, and does not run again elsewhere.
 */
function endUnconfirmed(context: PlanContext, known: LiveExecution): void {
  const { record } = known;
  // This call records that the plan depends on the loss, if reactions to it are allowed. The result does not matter,
  // because a forced drain ends the execution in any case.
  mayReact(context, record.nodeId);
  const type = context.state.jobs.get(record.job)?.record.spec.type;
  const wasStopped = record.reason === "EXECUTION_STOPPED";
  const state = record.replacedBy !== null ? "REPLACED" : type === "ops" && !wasStopped ? "FAILED" : "STOPPED";
  const reason = wasStopped ? record.reason : "UNCONFIRMED";
  const message = "its node was drained and did not confirm that the execution ended";
  const end = endedPart({ state, reason, message }, context.nowMs);
  changeExecution(context, known, "ENDED", { ...end, desired: "STOP", holds: record.holds });
}

/** Move an execution of a service. Executions of other jobs can run until the deadline, then they are stopped. */
function endOne(context: PlanContext, known: LiveExecution, isOver: boolean): void {
  const { state } = context;
  const { record } = known;
  const { nodeId } = record;
  if (record.desired !== "RUN") return;
  const job = state.jobs.get(record.job);
  const place = job === undefined ? undefined : placeOf(job, record);
  if (job === undefined || place === undefined || job.record.spec.type !== "service" || liveIn(place) !== known) {
    if (isOver) stopExecution(context, known, "NODE_DRAINED");
    return;
  }
  if (!isOver && inTransit(job) >= job.record.spec.update.maxParallel) {
    job.drainsWaiting.add(nodeId);
    return;
  }
  const placed = replaceExecution(context, job, place, { old: known, reason: "NODE_DRAINED", isKept: false });
  if (placed === "placed") return;
  if (isOver) stopExecution(context, known, "NODE_DRAINED");
  else state.stuckDrains.add(nodeId);
}
