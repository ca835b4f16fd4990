import { isMatch } from "../placement/placement-search.ts";
import { changeExecution, lookAt, mayReact, type PlanContext } from "./plan-context.ts";
import { fillPlace, type Placed, replaceExecution, stopExecution } from "./plan-place.ts";
import { dropPlace, indexPlace, setOutcome } from "./work-index.ts";
import {
  isBarred,
  isOutdated,
  isPerNode,
  isPlaced,
  isReady,
  isRefused,
  isSurged,
  jobCouldFit,
  type KnownExecution,
  type KnownJob,
  liveIn,
  nodeMatches,
  type Place,
  surgedIn,
} from "./work-state.ts";

/** Do what a place of a job needs; false when the plan has no room for it. */
export function reviewPlace(context: PlanContext, job: KnownJob, place: Place): boolean {
  const { record } = job;
  if (record.state !== "ACTIVE" || (!isPerNode(record) && place.index >= record.count)) {
    endPlace(context, job, place, record.state === "ACTIVE" ? "SCALED_DOWN" : "JOB_STOPPED");
    return true;
  }
  const strayed = place.nodeId !== null && !isBarred(record) && !nodeMatches(context.state, job, place.nodeId);
  // What runs of a version whose update halted was placed by that version's constraints, and stays.
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

function isOfHalted({ record }: KnownJob, place: Place): boolean {
  const live = liveIn(place);
  return record.halted !== null && live !== undefined && !isPlaced(live.record, record);
}

/** How long a node with a condition keeps what has not started there. */
export const UNSTARTED_STAYS_MS = 60_000;

/**
 * Place an execution elsewhere that its node has not started, because it reports a condition. One that may run twice is
 * placed at once, any other when its node has confirmed that it will not run. What has started stays.
 */
function moveUnstarted(context: PlanContext, job: KnownJob, place: Place, live: KnownExecution): boolean {
  const { state, nowMs } = context;
  const { record, observation } = live;
  const sinceMs = state.pool.get(record.nodeId)?.node.conditionSinceMs ?? null;
  const hasStarted = observation !== null && observation.observed !== "STARTING";
  if (sinceMs === null || hasStarted || place.nodeId !== null) return true;
  const dueAtMs = Math.max(sinceMs, record.createdAtMs) + UNSTARTED_STAYS_MS;
  if (nowMs < dueAtMs) {
    lookAt(context, { atMs: dueAtMs, kind: "job", name: job.record.name, index: place.index });
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
      // It is tried again when a node has something to give, or when the condition is over.
      job.waiting.add(place.index);
      state.waitingJobs.add(job.record.name);
      return true;
    case "placed":
      return true;
  }
}

/** Remember that a place found no node, and give it up when its job says so. */
function waitForNode(context: PlanContext, job: KnownJob, place: Place): void {
  const { state, nowMs } = context;
  const { name, spec, submittedAtMs } = job.record;
  const isNew = place.last === null && place.executions.length === 0;
  place.waitingSinceMs ??= isNew ? submittedAtMs : nowMs;
  job.waiting.add(place.index);
  state.waitingJobs.add(name);
  // A place of a service or daemon is filled as soon as a node fits, however late.
  if (spec.type === "service" || spec.type === "daemon" || isRefused(job.record)) return;
  const timeoutAtMs = spec.queueTimeoutMs === null ? null : place.waitingSinceMs + spec.queueTimeoutMs;
  const isOver = timeoutAtMs === null ? isNew && !jobCouldFit(state, job) : timeoutAtMs <= nowMs;
  if (isOver) {
    job.waiting.delete(place.index);
    setOutcome(job, place, "failed");
  } else if (timeoutAtMs !== null) {
    lookAt(context, { atMs: timeoutAtMs, kind: "job", name, index: place.index });
  }
}

/** An execution that was adopted may have a place where another runs: the one that can be used stays. */
function stopDuplicates(context: PlanContext, job: KnownJob, place: Place): void {
  const wanted = place.executions.filter(({ record }) => record.desired === "RUN" && record.replacedBy === null);
  if (wanted.length < 2) return;
  const kept = wanted.find((known) => isReady(known, job.record)) ?? wanted.at(-1);
  for (const known of wanted) if (known !== kept) stopExecution(context, known, "DUPLICATE");
}

/**
 * Keep the execution that an update was about to replace, where its replacement has ended, or is not ready and is no
 * longer wanted, because the update has halted or the job was reverted.
 */
function restoreSurged(context: PlanContext, job: KnownJob, place: Place): void {
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

function fill(context: PlanContext, job: KnownJob, place: Place): boolean {
  // Only a service may begin elsewhere while the one before is still told to stop.
  const isStopping = place.executions.some(({ record }) => record.replacedBy === null);
  if (isStopping && job.record.spec.type !== "service") return true;
  if (place.nodeId !== null && place.executions.length === 0 && job.record.spec.type === "daemon") {
    const of = context.state.pool.classOf(place.nodeId);
    // It is looked at again when the node changes.
    if (of === undefined || !isMatch(of, job.request)) {
      dropPlace(job, place);
      return true;
    }
  }
  return afterAttempt(context, job, place, fillPlace(context, job, place));
}

function replaceLost(context: PlanContext, job: KnownJob, place: Place, live: KnownExecution): boolean {
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
    lookAt(context, { atMs: dueAtMs, kind: "job", name, index: place.index });
    return true;
  }
  // Its node is back, or was and is lost once more: it is looked at again when reactions to that are allowed.
  if (!isGone && !mayReact(context, live.record.nodeId)) {
    job.waiting.delete(place.index);
    return true;
  }
  const isKept = !isGone && spec.loss.reconcile === "keep-original";
  const why = { old: live, reason: isGone ? "GONE" : "NODE_LOST", isKept } as const;
  return afterAttempt(context, job, place, replaceExecution(context, job, place, why));
}

function afterAttempt(context: PlanContext, job: KnownJob, place: Place, placed: Placed | "nothing"): boolean {
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

/** Since when an execution has been ready, and whether for long enough; it decides what returns beside it, too. */
function trackReady(context: PlanContext, job: KnownJob, place: Place, live: KnownExecution): void {
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
    else lookAt(context, { atMs: settledAtMs, kind: "job", name, index: place.index });
    indexPlace(job, place);
  }
  const surged = surgedIn(place);
  if (place.ready.isSettled && surged !== undefined) stopExecution(context, surged, surgedReason(surged));
}

function surgedReason({ record }: KnownExecution): "JOB_UPDATED" | "JOB_RESTARTED" {
  return record.reason === "JOB_RESTARTED" ? "JOB_RESTARTED" : "JOB_UPDATED";
}

function endPlace(context: PlanContext, job: KnownJob, place: Place, reason: "JOB_STOPPED" | "SCALED_DOWN"): void {
  for (const known of [...place.executions]) stopExecution(context, known, reason);
  job.waiting.delete(place.index);
  if (place.executions.length === 0) dropPlace(job, place);
}

/** A node that no longer has what a daemon asks for, or is gone. */
function leaveNode(context: PlanContext, job: KnownJob, place: Place): void {
  for (const known of [...place.executions]) stopExecution(context, known, "NODE_LABELS_CHANGED");
  job.waiting.delete(place.index);
  if (place.executions.length > 0) return;
  // What an ops job did on a node that is gone still counts.
  if (job.record.spec.type === "daemon") dropPlace(job, place);
  else setOutcome(job, place, place.outcome ?? "failed");
}
