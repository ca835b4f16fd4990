import { stateWords } from "../../state-words.ts";
import type { Execution } from "../execution.ts";
import { refusalsText } from "../explain.ts";
import type { Job } from "../job.ts";
import { isMatch } from "../placement/placement-search.ts";
import { countRefusals } from "../placement/refusals.ts";
import { isFailure } from "../retry-replica.ts";
import { changeJob, hasRoom, type PlanContext, scanNow } from "./plan-context.ts";
import { replaceExecution, stopExecution } from "./plan-replica.ts";
import { reviewPlace } from "./review-replica.ts";
import { countVacant } from "./vacant-nodes.ts";
import { dropPlace, placeAt } from "./work-index.ts";
import {
  inTransit,
  isKept,
  isOutdated,
  isPerNode,
  isReady,
  isRefused,
  isReplacedByUpdate,
  isUpdating,
  type JobReplica,
  jobCouldFit,
  type LiveJob,
  liveIn,
  mayEnd,
  untriedIn,
} from "./work-state.ts";

/** Plan the next steps of a job. Returns false if the plan has no room for all of them. */
export function planJob(context: PlanContext, job: LiveJob): boolean {
  const failedBefore = job.failed;
  const isWhole =
    reviewPlaces(context, job) && takeNodes(context, job) && takeFresh(context, job) && retry(context, job);
  if (job.failed > failedBefore) noteUnplaced(context, job);
  if (!isWhole) return false;
  if (!rollOut(context, job)) return false;
  noteReady(context, job);
  noteWaiting(context, job);
  if (inTransit(job) < job.record.spec.update.maxParallel) wakeDrains(context, job);
  endJob(context, job);
  if (job.waiting.size === 0 && !hasFresh(job)) context.state.waitingJobs.delete(job.record.name);
  return true;
}

/** Whether nodes have gained resources since a replica of the job last found no node. */
export function canRetry({ state }: PlanContext, job: LiveJob): boolean {
  return job.waitedGains !== state.pool.gains;
}

function reviewPlaces(context: PlanContext, job: LiveJob): boolean {
  for (const index of job.todo) {
    const place = job.places.get(index);
    if (place !== undefined) {
      haltOnFailure(context, job, place);
      if (!hasRoom(context) || !reviewPlace(context, job, place)) return false;
    }
    job.todo.delete(index);
  }
  return true;
}

/** Create the missing replicas of an ops job or daemon, one for each node on which it must run. */
function takeNodes(context: PlanContext, job: LiveJob): boolean {
  const { pool } = context.state;
  const { nodeId: named } = job.request.spec.constraints;
  for (const nodeId of job.nodesToCheck) {
    const of = pool.classOf(nodeId);
    const isWanted = of !== undefined && (named === null || named === nodeId) && isMatch(of, job.request);
    if (isWanted && job.record.state === "ACTIVE" && !job.replicaByNode.has(nodeId)) {
      if (!hasRoom(context)) return false;
      const place = placeAt(job, job.fresh, nodeId);
      reviewPlace(context, job, place);
    }
    job.nodesToCheck.delete(nodeId);
  }
  const { spec, placed, state } = job.record;
  const isDone =
    spec.type === "ops" && !isRefused(job.record) && state === "ACTIVE" && !placed && job.waiting.size === 0;
  if (isDone) changeJob(context, job, { placed: true });
  return true;
}

/** Place replicas that were never reviewed. If a replica finds no node, all later replicas wait too. */
function takeFresh(context: PlanContext, job: LiveJob): boolean {
  const { record } = job;
  if (isPerNode(record) || record.state !== "ACTIVE") return true;
  job.fresh = Math.min(job.fresh, record.count);
  while (job.fresh < record.count) {
    if (!job.places.has(job.fresh)) {
      if (job.waiting.size > 0) return true;
      const place = placeAt(job, job.fresh, null);
      if (!hasRoom(context) || !reviewPlace(context, job, place)) {
        dropPlace(job, place);
        return false;
      }
    }
    job.fresh += 1;
  }
  return true;
}

/** Retry replicas that found no node, if nodes have gained resources since. */
function retry(context: PlanContext, job: LiveJob): boolean {
  if (job.waiting.size === 0 || !canRetry(context, job)) return true;
  const { pool } = context.state;
  const gains = pool.gains;
  for (const index of [...job.waiting]) {
    const place = job.places.get(index);
    if (place === undefined) {
      job.waiting.delete(index);
      continue;
    }
    if (!hasRoom(context) || !reviewPlace(context, job, place)) return false;
    // Stop if this replica still waits and is not bound to a node: all later replicas have the same requirements, so
    // they will not fit either.
    if (job.waiting.has(index) && place.nodeId === null) break;
  }
  if (job.waiting.size > 0) job.waitedGains = gains;
  return job.waiting.size > 0 || takeFresh(context, job);
}

/** Replace the outdated executions of an update, a few at a time. */
function rollOut(context: PlanContext, job: LiveJob): boolean {
  const { record } = job;
  const { type, update } = record.spec;
  if (!isUpdating(job) || isRefused(record)) return true;
  noteReplaced(context, job);
  haltOnDeadline(context, job);
  const roomless = countRoomless(job);
  const isFull = () => job.record.halted !== null || inTransit(job) - roomless >= update.maxParallel;
  if (isFull()) return true;
  for (const index of unprovenFirst(job)) {
    if (isFull()) return true;
    const place = job.places.get(index);
    const live = place === undefined ? undefined : liveIn(place);
    // Skip a lost execution, because the loss policy decides when it is replaced.
    if (place === undefined || live === undefined || live.record.state === "LOST") continue;
    if (!hasRoom(context)) return false;
    const reason = live.record.version === record.version ? "JOB_RESTARTED" : "JOB_UPDATED";
    const placed =
      type === "daemon"
        ? "no-node"
        : replaceExecution(context, job, place, { old: live, reason, isKept: maySurge(job, place) });
    if (placed === "no-room-in-plan") return false;
    if (placed === "placed") continue;
    if (type === "service" && !jobCouldFit(context.state, job)) {
      const { counts, nodes } = countRefusals(context.state.pool, job.request, job.counts);
      halt(context, job, `no node fits version ${record.version}: ${refusalsText({ counts, nodes })}`);
      return true;
    }
    // There is no room for both executions, so stop the old execution first to free its resources for the new one.
    stopExecution(context, live, reason);
  }
  return true;
}

/**
 * Outdated replicas, in the order in which to replace their executions. Replicas come first if their newest execution
 * is not ready, or if they keep an old execution until the newest is ready, because replacing that newest execution
 * costs no capacity. In any other order, an update that supersedes an unfinished one would take down more replicas.
 */
function unprovenFirst(job: LiveJob): readonly number[] {
  const isUnproven = (index: number): boolean => {
    const place = job.places.get(index);
    const live = place === undefined ? undefined : liveIn(place);
    return job.surging.has(index) || live === undefined || !isReady(live, job.record);
  };
  const outdated = [...job.outdated];
  return [...outdated.filter(isUnproven), ...outdated.filter((index) => !isUnproven(index))];
}

/**
 * Whether an execution can keep running until its replacement is ready. Each replica keeps at most one such execution.
 */
function maySurge({ surging, record }: LiveJob, place: JobReplica): boolean {
  return !surging.has(place.index) && surging.size < record.spec.update.maxSurge;
}

function haltOnFailure(context: PlanContext, job: LiveJob, place: JobReplica): void {
  const { last } = place;
  const { record } = job;
  if (!isUpdating(job) || last === null) return;
  if (isOutdated(last, record) || !isFailure(last, record.spec.type)) return;
  // Ignore a failure before this update. It does not show whether the update fails, even if the specification is the
  // same.
  if (!endedInUpdate(last, record)) return;
  halt(context, job, `execution ${last.id} on node ${last.nodeId} failed: ${last.message || stateWords(last.reason)}`);
}

function haltOnDeadline(context: PlanContext, job: LiveJob): void {
  const { nowMs } = context;
  const { name, spec } = job.record;
  for (const index of [...job.unready, ...job.empty]) {
    const place = job.places.get(index);
    if (place === undefined || isRoomless(job, place)) continue;
    const known = liveIn(place);
    // Skip an execution that was ready once. It has no deadline, even if it is not ready now.
    if (known?.wasReady) continue;
    const live = known?.record;
    const sinceMs = live?.createdAtMs ?? place.waitingSinceMs;
    if (sinceMs === null) continue;
    const deadlineAtMs = sinceMs + spec.update.readyDeadlineMs;
    if (deadlineAtMs > nowMs) {
      scanNow(context, { atMs: deadlineAtMs, kind: "job", name, index: null });
      continue;
    }
    const seconds = spec.update.readyDeadlineMs / 1_000;
    const what =
      live === undefined ? `no node was found for replica ${index}` : `execution ${live.id} on node ${live.nodeId}`;
    halt(context, job, `${what}${live === undefined ? "" : " was not ready"} within ${seconds} s`);
    return;
  }
}

/** The number of replicas that had no room even before the update. The update continues without them. */
function countRoomless(job: LiveJob): number {
  let found = job.waiting.size > 0 ? untriedIn(job) : 0;
  for (const index of job.empty) {
    const place = job.places.get(index);
    if (place !== undefined && isRoomless(job, place)) found += 1;
  }
  return found;
}

/**
 * Whether a replica found no node for a reason other than this update. A replica whose execution this update has
 * stopped counts as in transit until it has a new execution, so that the update stops no further executions if the new
 * one does not fit.
 */
function isRoomless({ record, waiting }: LiveJob, { index, executions, last }: JobReplica): boolean {
  if (!waiting.has(index) || executions.length > 0) return false;
  return last === null || !isReplacedByUpdate(last) || !endedInUpdate(last, record);
}

/** Whether an execution ended after the newest version was submitted, or the job was restarted. */
function endedInUpdate({ endedAtMs }: Execution, { submittedAtMs }: Job): boolean {
  return (endedAtMs ?? 0) >= submittedAtMs;
}

function halt(context: PlanContext, job: LiveJob, message: string): void {
  changeJob(context, job, { halted: message, message: `the update halted: ${message}` });
}

/**
 * If no version has ever become completely ready, remember the newest version that is ready in any replica, before that
 * version is replaced.
 */
function noteReplaced(context: PlanContext, job: LiveJob): void {
  const readyVersion = job.record.readyVersion ?? readyAmongOutdated(job);
  if (readyVersion !== job.record.readyVersion) changeJob(context, job, { readyVersion });
}

function readyAmongOutdated(job: LiveJob): number | null {
  const versions = [...job.outdated].flatMap((index) => {
    const place = job.places.get(index);
    const live = place === undefined ? undefined : liveIn(place);
    return live !== undefined && live.record.version > 0 && isReady(live, job.record) ? [live.record.version] : [];
  });
  return versions.reduce<number | null>((newest, version) => ((newest ?? 0) < version ? version : newest), null);
}

/**
 * Record a version as ready if all its placed executions have been ready for long enough. Later updates fall back to
 * this version. The version is rolled out if, in addition, no replica waits for a node.
 */
function noteReady(context: PlanContext, job: LiveJob): void {
  const { record, unready, outdated, empty, waiting, places, fresh } = job;
  const { version, readyVersion, rolledOut, state, halted, count } = record;
  if (!isKept(record) || state !== "ACTIVE" || halted !== null || (readyVersion === version && rolledOut)) return;
  const isReadyWhole = unready.size === 0 && outdated.size === 0 && [...empty].every((index) => waiting.has(index));
  const isUntried = !isPerNode(record) && fresh < count && waiting.size === 0;
  if (!isReadyWhole || isUntried || ![...places.values()].some(({ ready }) => ready?.isSettled === true)) return;
  const isRolledOut = rolledOut || (waiting.size === 0 && !hasFresh(job) && !hasLost(job));
  if (readyVersion === version && rolledOut === isRolledOut) return;
  changeJob(context, job, { readyVersion: version, rolledOut: isRolledOut });
}

function noteWaiting(context: PlanContext, job: LiveJob): void {
  const waitingNodes = countVacant(context.state, job);
  if (waitingNodes !== job.record.waitingNodes) changeJob(context, job, { waitingNodes });
}

function hasLost({ places }: LiveJob): boolean {
  return [...places.values()].some((place) => liveIn(place)?.record.state === "LOST");
}

function wakeDrains({ state }: PlanContext, job: LiveJob): void {
  for (const nodeId of job.drainsWaiting) state.dirtyDrains.add(nodeId);
  job.drainsWaiting.clear();
}

function noteUnplaced({ state }: PlanContext, job: LiveJob): void {
  const unplaced = [...job.places.values()].filter(({ outcome, last }) => outcome === "failed" && last === null).length;
  if (unplaced === 0) return;
  const { counts, nodes } = countRefusals(state.pool, job.request, job.counts);
  job.unplaced = `${unplaced} of them because no node fits (${refusalsText({ counts, nodes })})`;
}

/** Record the end of a job if all its replicas have ended. */
function endJob(context: PlanContext, job: LiveJob): void {
  const { record } = job;
  if (!mayEnd(record) || record.state !== "ACTIVE" || job.todo.size > 0) return;
  const isWhole = isPerNode(record) ? record.placed && job.nodesToCheck.size === 0 : !hasFresh(job);
  const total = isPerNode(record) ? job.places.size : record.count;
  if (!isWhole || job.done + job.failed < total) return;
  if (total === 0 && isPerNode(record)) {
    changeJob(context, job, { state: "FAILED", message: "no node matched" });
    return;
  }
  const failed = `${job.failed} of ${total} execution${total === 1 ? "" : "s"} failed`;
  const message = job.unplaced === "" ? failed : `${failed}, ${job.unplaced}`;
  changeJob(context, job, job.failed === 0 ? { state: "COMPLETED", message: "" } : { state: "FAILED", message });
}

function hasFresh({ record, fresh }: LiveJob): boolean {
  return !isPerNode(record) && record.state === "ACTIVE" && fresh < record.count;
}
