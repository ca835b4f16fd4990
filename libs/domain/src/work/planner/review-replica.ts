import { isMatch } from "../placement/placement-search.ts";
import { changeExecution, mayReact, type PlanContext, scanNow } from "./plan-context.ts";
import { fillPlace, type Placed, replaceExecution, stopExecution } from "./plan-replica.ts";
import { dropPlace, indexPlace, setOutcome } from "./work-index.ts";
import {
  isBarred,
  isOutdated,
  isPerNode,
  isPlaced,
  isReady,
  isRefused,
  isSurged,
  type JobReplica,
  jobCouldFit,
  type LiveExecution,
  type LiveJob,
  liveIn,
  nodeMatches,
  surgedIn,
} from "./work-state.ts";

/** Plan the next steps of a replica. Returns false if the plan has no room for them. */
export function reviewPlace(context: PlanContext, job: LiveJob, place: JobReplica): boolean {
  const { record } = job;
  if (record.state !== "ACTIVE" || (!isPerNode(record) && place.index >= record.count)) {
    endPlace(context, job, place, record.state === "ACTIVE" ? "SCALED_DOWN" : "JOB_STOPPED");
    return true;
  }
  const strayed = place.nodeId !== null && !isBarred(record) && !nodeMatches(context.state, job, place.nodeId);
  // Keep executions of a version whose update halted, because they were placed by the constraints of that version.
  if (strayed && !isOfHalted(job, place)) {
    if (record.spec.type === "daemon" || place.executions.length === 0) leaveNode(context, job, place);
    return true;
  }
  stopDuplicates(context, job, place);
  restoreSurged(context, job, place);
  const live = liveIn(place);
  if (live === undefined) return fill(context, job, place);
  trackReady(context, job, place, live);
  if (live.record.state === "LOST") return replaceLost(context, job, place, live);
  job.waiting.delete(place.index);
  return moveUnstarted(context, job, place, live);
}

function isOfHalted({ record }: LiveJob, place: JobReplica): boolean {
  const live = liveIn(place);
  return record.halted !== null && live !== undefined && !isPlaced(live.record, record);
}

/**
 * How long an execution stays on a node that reports a condition and has not started the execution, in milliseconds.
 */
export const UNSTARTED_STAYS_MS = 60_000;

/**
 * Move an execution away from a node that reports a condition and has not started the execution. If the execution may
 * run twice, it is replaced immediately. Otherwise it is replaced after the node has confirmed that it will not run.
 * Started executions stay.
 */
function moveUnstarted(context: PlanContext, job: LiveJob, place: JobReplica, live: LiveExecution): boolean {
  const { state, nowMs } = context;
  const { record, observation } = live;
  const sinceMs = state.pool.get(record.nodeId)?.node.conditionSinceMs ?? null;
  const hasStarted = observation !== null && observation.observed !== "STARTING";
  if (sinceMs === null || hasStarted || place.nodeId !== null) return true;
  const dueAtMs = Math.max(sinceMs, record.createdAtMs) + UNSTARTED_STAYS_MS;
  if (nowMs < dueAtMs) {
    scanNow(context, { atMs: dueAtMs, kind: "job", name: job.record.name, index: place.index });
    return true;
  }
  if (!job.record.spec.loss.replace) {
    stopExecution(context, live, "NODE_CONDITION");
    return true;
  }
  const why = { old: live, reason: "NODE_CONDITION", isKept: false } as const;
  switch (replaceExecution(context, job, place, why)) {
    case "no-room-in-plan":
      return false;
    case "no-node":
      // Retry when a node gains resources. If the condition ends first, the execution stays.
      job.waiting.add(place.index);
      state.waitingJobs.add(job.record.name);
      return true;
    case "placed":
      return true;
  }
}

/** Record that a replica found no node. Give up if the job specifies that. */
function waitForNode(context: PlanContext, job: LiveJob, place: JobReplica): void {
  const { state, nowMs } = context;
  const { name, spec, submittedAtMs } = job.record;
  const isNew = place.last === null && place.executions.length === 0;
  place.waitingSinceMs ??= isNew ? submittedAtMs : nowMs;
  job.waiting.add(place.index);
  state.waitingJobs.add(name);
  // Never give up for a service or daemon.
  if (spec.type === "service" || spec.type === "daemon" || isRefused(job.record)) return;
  const timeoutAtMs = spec.queueTimeoutMs === null ? null : place.waitingSinceMs + spec.queueTimeoutMs;
  const isOver = timeoutAtMs === null ? isNew && !jobCouldFit(state, job) : timeoutAtMs <= nowMs;
  if (isOver) {
    job.waiting.delete(place.index);
    setOutcome(job, place, "failed");
  } else if (timeoutAtMs !== null) {
    scanNow(context, { atMs: timeoutAtMs, kind: "job", name, index: place.index });
  }
}

/**
 * Stop all but one execution of a replica, because an adopted execution can have the same replica index as another. A
 * ready execution is kept.
 */
function stopDuplicates(context: PlanContext, job: LiveJob, place: JobReplica): void {
  const wanted = place.executions.filter(({ record }) => record.desired === "RUN" && record.replacedBy === null);
  if (wanted.length < 2) return;
  const kept = wanted.find((known) => isReady(known, job.record)) ?? wanted.at(-1);
  for (const known of wanted) if (known !== kept) stopExecution(context, known, "DUPLICATE");
}

/**
 * Restore the old execution that an update was replacing, if its replacement has ended. Also restore it if the
 * replacement is not ready and no longer wanted, because the update halted or the job was reverted.
 */
function restoreSurged(context: PlanContext, job: LiveJob, place: JobReplica): void {
  const { record } = job;
  const surged = surgedIn(place);
  if (surged === undefined) return;
  const live = liveIn(place);
  if (live !== undefined) {
    const isUnwanted = record.halted === null ? isOutdated(live.record, record) : !isPlaced(live.record, record);
    const isBack = record.halted !== null || !isOutdated(surged.record, record);
    if (!isUnwanted || !isBack || isReady(live, record)) return;
    stopExecution(context, live, "JOB_UPDATED");
  }
  changeExecution(context, surged, "RESTORED", { replacedBy: null, reason: "", message: "" });
}

function fill(context: PlanContext, job: LiveJob, place: JobReplica): boolean {
  // Wait while the previous execution is still stopping, unless the job is a service.
  const isStopping = place.executions.some(({ record }) => record.replacedBy === null);
  if (isStopping && job.record.spec.type !== "service") return true;
  if (place.nodeId !== null && place.executions.length === 0 && job.record.spec.type === "daemon") {
    const of = context.state.pool.classOf(place.nodeId);
    // Drop the replica if the node no longer matches. If the node changes and matches again, the replica is created
    // again.
    if (of === undefined || !isMatch(of, job.request)) {
      dropPlace(job, place);
      return true;
    }
  }
  return afterAttempt(context, job, place, fillPlace(context, job, place));
}

function replaceLost(context: PlanContext, job: LiveJob, place: JobReplica, live: LiveExecution): boolean {
  const { nowMs } = context;
  const { name, spec } = job.record;
  const { reason, lostAtMs } = live.record;
  const isGone = reason === "GONE";
  const isReplaced = spec.type === "daemon" ? isGone : spec.loss.replace;
  if (!isReplaced) {
    job.waiting.delete(place.index);
    return true;
  }
  const dueAtMs = (lostAtMs ?? nowMs) + (isGone ? 0 : spec.loss.lostAfterMs);
  if (nowMs < dueAtMs) {
    job.waiting.delete(place.index);
    scanNow(context, { atMs: dueAtMs, kind: "job", name, index: place.index });
    return true;
  }
  // Wait if the node has returned, or is lost again. The replica is reviewed once reactions to the new loss are
  // allowed.
  if (!isGone && !mayReact(context, live.record.nodeId)) {
    job.waiting.delete(place.index);
    return true;
  }
  const isKept = !isGone && spec.loss.reconcile === "keep-original";
  const why = { old: live, reason: isGone ? "GONE" : "NODE_LOST", isKept } as const;
  return afterAttempt(context, job, place, replaceExecution(context, job, place, why));
}

function afterAttempt(context: PlanContext, job: LiveJob, place: JobReplica, placed: Placed | "nothing"): boolean {
  switch (placed) {
    case "no-room-in-plan":
      return false;
    case "no-node":
      waitForNode(context, job, place);
      return true;
    case "placed":
    case "nothing":
      job.waiting.delete(place.index);
      return true;
  }
}

/**
 * Track how long an execution has been ready, and whether that is long enough. Once it is, the execution that it
 * replaced is stopped, if that execution was kept.
 */
function trackReady(context: PlanContext, job: LiveJob, place: JobReplica, live: LiveExecution): void {
  const { nowMs } = context;
  const { name, spec } = job.record;
  if (!isReady(live, job.record)) {
    place.ready = null;
    indexPlace(job, place);
    return;
  }
  live.wasReady = true;
  for (const other of [...place.executions]) {
    if (other === live || other.record.replacedBy === null || isSurged(other)) continue;
    stopExecution(context, other, "NODE_LOST");
  }
  if (spec.type !== "service" && spec.type !== "daemon") return;
  place.ready ??= { id: live.record.id, sinceMs: nowMs, isSettled: false };
  if (!place.ready.isSettled) {
    const settledAtMs = place.ready.sinceMs + spec.update.minReadyMs;
    if (settledAtMs <= nowMs) place.ready.isSettled = true;
    else scanNow(context, { atMs: settledAtMs, kind: "job", name, index: place.index });
    indexPlace(job, place);
  }
  const surged = surgedIn(place);
  if (place.ready.isSettled && surged !== undefined) stopExecution(context, surged, surgedReason(surged));
}

function surgedReason({ record }: LiveExecution): "JOB_UPDATED" | "JOB_RESTARTED" {
  return record.reason === "JOB_RESTARTED" ? "JOB_RESTARTED" : "JOB_UPDATED";
}

function endPlace(context: PlanContext, job: LiveJob, place: JobReplica, reason: "JOB_STOPPED" | "SCALED_DOWN"): void {
  for (const known of [...place.executions]) stopExecution(context, known, reason);
  job.waiting.delete(place.index);
  if (place.executions.length === 0) dropPlace(job, place);
}

/** Stop a replica whose node is gone or no longer meets the job's requirements. */
function leaveNode(context: PlanContext, job: LiveJob, place: JobReplica): void {
  for (const known of [...place.executions]) stopExecution(context, known, "NODE_LABELS_CHANGED");
  job.waiting.delete(place.index);
  if (place.executions.length > 0) return;
  // Keep the replica of an ops job, because its result counts even if its node was deleted.
  if (job.record.spec.type === "daemon") dropPlace(job, place);
  else setOutcome(job, place, place.outcome ?? "failed");
}
