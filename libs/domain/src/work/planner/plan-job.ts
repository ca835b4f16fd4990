import type { ExecutionRecord } from "../execution.ts";
import { refusalsText } from "../explain.ts";
import type { JobRecord } from "../job-record.ts";
import { isMatch } from "../placement/placement-search.ts";
import { countRefusals } from "../placement/refusals.ts";
import { isFailure } from "../retry-place.ts";
import { changeJob, hasRoom, lookAt, type PlanContext } from "./plan-context.ts";
import { replaceExecution, stopExecution } from "./plan-place.ts";
import { reviewPlace } from "./review-place.ts";
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
  jobCouldFit,
  type KnownJob,
  liveIn,
  mayEnd,
  type Place,
  untriedIn,
} from "./work-state.ts";

/** Do what a job needs; false when the plan has no room for all of it. */
export function planJob(context: PlanContext, job: KnownJob): boolean {
  const failedBefore = job.failed;
  const isWhole =
    reviewPlaces(context, job) && takeNodes(context, job) && takeFresh(context, job) && retry(context, job);
  if (job.failed > failedBefore) noteUnplaced(context, job);
  if (!isWhole) return false;
  if (!rollOut(context, job)) return false;
  noteReady(context, job);
  if (inTransit(job) < job.record.spec.update.maxParallel) wakeDrains(context, job);
  endJob(context, job);
  if (job.waiting.size === 0 && !hasFresh(job)) context.state.waitingJobs.delete(job.record.name);
  return true;
}

/** Whether a job waits for nodes, and there is something new to try. */
export function canRetry({ state }: PlanContext, job: KnownJob): boolean {
  return job.waitedGains !== state.pool.gains;
}

function reviewPlaces(context: PlanContext, job: KnownJob): boolean {
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

/** Make places for nodes that an ops job or daemon is to run on. */
function takeNodes(context: PlanContext, job: KnownJob): boolean {
  const { pool } = context.state;
  const { nodeId: named } = job.request.spec.constraints;
  for (const nodeId of job.nodesToCheck) {
    const of = pool.classOf(nodeId);
    const isWanted = of !== undefined && (named === null || named === nodeId) && isMatch(of, job.request);
    if (isWanted && job.record.state === "ACTIVE" && !job.placeByNode.has(nodeId)) {
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

/** Fill places that were never looked at. The first that finds no node waits for all after it. */
function takeFresh(context: PlanContext, job: KnownJob): boolean {
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

/** Try the places that found no node, when nodes have something to give that they had not. */
function retry(context: PlanContext, job: KnownJob): boolean {
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
    // What is not for one node asks for the same as those after it.
    if (job.waiting.has(index) && place.nodeId === null) break;
  }
  if (job.waiting.size > 0) job.waitedGains = gains;
  return job.waiting.size > 0 || takeFresh(context, job);
}

/** Replace what an update replaces, a few at a time. */
function rollOut(context: PlanContext, job: KnownJob): boolean {
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
    // What is lost is replaced as its loss policy says.
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
    // There is no room for both: the new one takes what the old one returns.
    stopExecution(context, live, reason);
  }
  return true;
}

/**
 * Outdated places; those first in which the newest execution is not ready, or another is kept until it is: replacing it
 * costs no capacity. An update that another one overtakes would take further places down otherwise.
 */
function unprovenFirst(job: KnownJob): readonly number[] {
  const isUnproven = (index: number): boolean => {
    const place = job.places.get(index);
    const live = place === undefined ? undefined : liveIn(place);
    return job.surging.has(index) || live === undefined || !isReady(live, job.record);
  };
  const outdated = [...job.outdated];
  return [...outdated.filter(isUnproven), ...outdated.filter((index) => !isUnproven(index))];
}

/** Whether what is replaced in a place may run until its replacement is ready. Only one execution is kept there. */
function maySurge({ surging, record }: KnownJob, place: Place): boolean {
  return !surging.has(place.index) && surging.size < record.spec.update.maxSurge;
}

function haltOnFailure(context: PlanContext, job: KnownJob, place: Place): void {
  const { last } = place;
  const { record } = job;
  if (!isUpdating(job) || last === null) return;
  if (isOutdated(last, record) || !isFailure(last, record.spec.type)) return;
  // What failed before says nothing about this update, even if it ran the same specification.
  if (!endedInUpdate(last, record)) return;
  halt(context, job, `execution ${last.id} on node ${last.nodeId} failed: ${last.message || last.reason}`);
}

function haltOnDeadline(context: PlanContext, job: KnownJob): void {
  const { nowMs } = context;
  const { name, spec } = job.record;
  for (const index of [...job.unready, ...job.empty]) {
    const place = job.places.get(index);
    if (place === undefined || isRoomless(job, place)) continue;
    const known = liveIn(place);
    // One that was ready before, and is not now, is no longer subject to a deadline.
    if (known?.wasReady) continue;
    const live = known?.record;
    const sinceMs = live?.createdAtMs ?? place.waitingSinceMs;
    if (sinceMs === null) continue;
    const deadlineAtMs = sinceMs + spec.update.readyDeadlineMs;
    if (deadlineAtMs > nowMs) {
      lookAt(context, { atMs: deadlineAtMs, kind: "job", name, index: null });
      continue;
    }
    const seconds = spec.update.readyDeadlineMs / 1_000;
    const what = live === undefined ? `place ${index} found no node` : `execution ${live.id} on node ${live.nodeId}`;
    halt(context, job, `${what}${live === undefined ? "" : " was not ready"} within ${seconds} s`);
    return;
  }
}

/** How many places had no room before the update, too: it continues without them. */
function countRoomless(job: KnownJob): number {
  let found = job.waiting.size > 0 ? untriedIn(job) : 0;
  for (const index of job.empty) {
    const place = job.places.get(index);
    if (place !== undefined && isRoomless(job, place)) found += 1;
  }
  return found;
}

/**
 * Whether a place found no node, although the update stopped nothing in it. One that lost its execution to the update
 * counts as on its way until it has a new one: if that does not fit, the update must not stop the next.
 */
function isRoomless({ record, waiting }: KnownJob, { index, executions, last }: Place): boolean {
  if (!waiting.has(index) || executions.length > 0) return false;
  return last === null || !isReplacedByUpdate(last) || !endedInUpdate(last, record);
}

/** Whether an execution ended after the newest version was submitted, or restarted. */
function endedInUpdate({ endedAtMs }: ExecutionRecord, { submittedAtMs }: JobRecord): boolean {
  return (endedAtMs ?? 0) >= submittedAtMs;
}

function halt(context: PlanContext, job: KnownJob, message: string): void {
  changeJob(context, job, { halted: message, message: `the update halted: ${message}` });
}

/** Where no version ever became ready as a whole, remember the newest that is ready somewhere before it is replaced. */
function noteReplaced(context: PlanContext, job: KnownJob): void {
  const readyVersion = job.record.readyVersion ?? readyAmongOutdated(job);
  if (readyVersion !== job.record.readyVersion) changeJob(context, job, { readyVersion });
}

function readyAmongOutdated(job: KnownJob): number | null {
  const versions = [...job.outdated].flatMap((index) => {
    const place = job.places.get(index);
    const live = place === undefined ? undefined : liveIn(place);
    return live !== undefined && live.record.version > 0 && isReady(live, job.record) ? [live.record.version] : [];
  });
  return versions.reduce<number | null>((newest, version) => ((newest ?? 0) < version ? version : newest), null);
}

/** Remember a version of which all that was placed has been ready for long enough: updates after it fall back on it. */
function noteReady(context: PlanContext, job: KnownJob): void {
  const { record, unready, outdated, empty, waiting, places, fresh } = job;
  const { version, readyVersion, state, halted, count } = record;
  if (!isKept(record) || state !== "ACTIVE" || halted !== null || readyVersion === version) return;
  const isRolledOut = unready.size === 0 && outdated.size === 0 && [...empty].every((index) => waiting.has(index));
  const isUntried = !isPerNode(record) && fresh < count && waiting.size === 0;
  if (!isRolledOut || isUntried || ![...places.values()].some(({ ready }) => ready?.isSettled === true)) return;
  changeJob(context, job, { readyVersion: version });
}

function wakeDrains({ state }: PlanContext, job: KnownJob): void {
  for (const nodeId of job.drainsWaiting) state.dirtyDrains.add(nodeId);
  job.drainsWaiting.clear();
}

function noteUnplaced({ state }: PlanContext, job: KnownJob): void {
  const unplaced = [...job.places.values()].filter(({ outcome, last }) => outcome === "failed" && last === null).length;
  if (unplaced === 0) return;
  const { counts, nodes } = countRefusals(state.pool, job.request, job.counts);
  job.unplaced = `${unplaced} found no node: ${refusalsText({ counts, nodes })}`;
}

/** Record the end of a job that ends. */
function endJob(context: PlanContext, job: KnownJob): void {
  const { record } = job;
  if (!mayEnd(record) || record.state !== "ACTIVE" || job.todo.size > 0) return;
  const isWhole = isPerNode(record) ? record.placed && job.nodesToCheck.size === 0 : !hasFresh(job);
  const total = isPerNode(record) ? job.places.size : record.count;
  if (!isWhole || job.done + job.failed < total) return;
  if (total === 0 && isPerNode(record)) {
    changeJob(context, job, { state: "FAILED", message: "no node matched" });
    return;
  }
  const failed = `${job.failed} of ${total} executions failed`;
  const message = job.unplaced === "" ? failed : `${failed}, ${job.unplaced}`;
  changeJob(context, job, job.failed === 0 ? { state: "COMPLETED", message: "" } : { state: "FAILED", message });
}

function hasFresh({ record, fresh }: KnownJob): boolean {
  return !isPerNode(record) && record.state === "ACTIVE" && fresh < record.count;
}
