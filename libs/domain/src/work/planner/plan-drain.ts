import { DEFAULT_STOP_GRACE_MS } from "../check-job.ts";
import { isTerminal } from "../execution-state.ts";
import type { DrainRecord } from "../job-record.ts";
import type { WorkNode } from "../work-node.ts";
import {
  changeDrain,
  changeExecution,
  endedPart,
  hasRoom,
  lookAt,
  mayReact,
  type PlanContext,
} from "./plan-context.ts";
import { replaceExecution, stopExecution } from "./plan-place.ts";
import { inTransit, type KnownExecution, liveIn, placeOf } from "./work-state.ts";

/** How long a node may take to confirm an end beyond the grace that it gives, before a forced drain counts on it. */
const CONFIRM_WITHIN_MS = 10_000;

/** Do what a drain needs; false when the plan has no room for all of it. */
export function planDrain(context: PlanContext, drain: DrainRecord): boolean {
  const { nodeId, deadlineAtMs, force, ignoreDaemons } = drain;
  if (drain.state === "UNCONFIRMED" && !hasUnconfirmed(context, drain)) {
    changeDrain(context, drain, { state: "DRAINED" });
  }
  if (drain.state !== "DRAINING") return true;
  context.state.stuckDrains.delete(nodeId);
  const isLate = isPastDeadline(context, drain);
  const isOver = force || isLate;
  if (!isLate && deadlineAtMs !== null)
    lookAt(context, { atMs: deadlineAtMs, kind: "drain", name: nodeId, index: null });
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

/** What a drain waits for: executions that have not ended, except daemons that it ignores. */
function executionsOn({ state }: PlanContext, nodeId: string): readonly KnownExecution[] {
  const ids = [...(state.byNode.get(nodeId) ?? [])];
  return ids.flatMap((id) => {
    const known = state.executions.get(id);
    return known === undefined || isTerminal(known.record.state) ? [] : [known];
  });
}

/** Whether a node may still run something that was recorded as ended without its confirmation. */
function hasUnconfirmed(context: PlanContext, { nodeId, ignoreDaemons }: DrainRecord): boolean {
  return [...(context.state.byNode.get(nodeId) ?? [])].some((id) => {
    const known = context.state.executions.get(id);
    if (known === undefined || !isTerminal(known.record.state) || !known.record.holds) return false;
    return !ignoreDaemons || !isDaemon(context, known);
  });
}

function isDaemon({ state }: PlanContext, { record }: KnownExecution): boolean {
  return state.jobs.get(record.job)?.record.spec.type === "daemon";
}

function isPastDeadline({ nowMs }: PlanContext, { deadlineAtMs }: DrainRecord): boolean {
  return deadlineAtMs !== null && deadlineAtMs <= nowMs;
}

/**
 * Whether nothing is expected of a node for an execution any more: reactions to its loss are allowed, or the drain is
 * forced and the node cannot confirm, or was told to stop it and has not confirmed in time.
 */
function isDead(context: PlanContext, drain: DrainRecord, known: KnownExecution): boolean {
  const node = context.state.pool.get(drain.nodeId)?.node;
  if (node === undefined) return false;
  if (node.reactionAllowed) return true;
  if (!drain.force) return false;
  return !canConfirm(node) || (isPastDeadline(context, drain) && confirmedByMs(context, known) <= context.nowMs);
}

/**
 * When a node should have confirmed the end of what it was told to stop; infinite for what it was not told. That it was
 * told counts from when this planner's drain has seen it: it is not recorded, and another leader waits again.
 */
function confirmedByMs({ state }: PlanContext, { record, stopSeenAtMs }: KnownExecution): number {
  if (record.desired !== "STOP" || stopSeenAtMs === null) return Number.POSITIVE_INFINITY;
  const graceMs = state.jobs.get(record.job)?.record.spec.stopGraceMs ?? DEFAULT_STOP_GRACE_MS;
  return stopSeenAtMs + graceMs + CONFIRM_WITHIN_MS;
}

/** Note that a node was told to stop an execution, and look again when a forced drain waits for it no longer. */
function awaitConfirmation(context: PlanContext, drain: DrainRecord, known: KnownExecution): void {
  if (known.record.desired !== "STOP" || isTerminal(known.record.state)) return;
  known.stopSeenAtMs ??= context.nowMs;
  // Until the deadline is over, the drain is looked at then.
  if (!drain.force || !isPastDeadline(context, drain)) return;
  lookAt(context, { atMs: confirmedByMs(context, known), kind: "drain", name: drain.nodeId, index: null });
}

/** Whether a node can say that something has ended there: one that is away, or takes no work now, cannot. */
function canConfirm({ health, connection, capacity }: WorkNode): boolean {
  return health === "HEALTHY" && connection === "CONNECTED" && capacity !== null && capacity.executors.length > 0;
}

/**
 * End an execution without its node's word. What it holds stays taken until the node confirms. What an operator stopped
 * stays stopped for that: it is not run again elsewhere.
 */
function endUnconfirmed(context: PlanContext, known: KnownExecution): void {
  const { record } = known;
  // Not the only reason for it: a forced drain ends it also when the node is back.
  mayReact(context, record.nodeId);
  const type = context.state.jobs.get(record.job)?.record.spec.type;
  const wasStopped = record.reason === "EXECUTION_STOPPED";
  const state = record.replacedBy !== null ? "REPLACED" : type === "ops" && !wasStopped ? "FAILED" : "STOPPED";
  const reason = wasStopped ? record.reason : "UNCONFIRMED";
  const message = "its node was drained and did not confirm the end";
  const end = endedPart({ state, reason, message }, context.nowMs);
  changeExecution(context, known, "ENDED", { ...end, desired: "STOP", holds: record.holds });
}

/** Services move; what ends by itself may do so until the deadline. */
function endOne(context: PlanContext, known: KnownExecution, isOver: boolean): void {
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
