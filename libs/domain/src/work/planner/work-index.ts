import { autoRevertTo } from "../edit-job.ts";
import type { Execution, Observation } from "../execution.ts";
import { isNewer, isTerminal } from "../execution-state.ts";
import type { Drain, Job } from "../job.ts";
import { placementRequest } from "../placement/placement-request.ts";
import { matchingNodes } from "../placement/refusals.ts";
import { isFailure, ranMsOf } from "../retry-replica.ts";
import type { WorkNode } from "../work-node.ts";
import { countStaying, moveGrant } from "./job-counts.ts";
import {
  forgetExecution,
  isEarlierRun,
  isOutdated,
  isPerNode,
  isPlaced,
  isPlacedChanged,
  type JobReplica,
  type LiveExecution,
  type LiveJob,
  liveIn,
  placedVersion,
  placeOf,
  rememberExecution,
  surgedIn,
  type WorkState,
} from "./work-state.ts";

/** Maximum number of nodes per job for which failures are counted. */
const MOST_FAILED_NODES = 1_000;

/** Add or update a node. If the change can affect its executions, mark them for review. */
export function putNode(state: WorkState, node: WorkNode): void {
  const before = state.pool.get(node.id)?.node;
  if (before !== undefined && isSameNode(before, node)) return;
  if (node.type !== "COMPUTE") {
    if (before !== undefined) dropNode(state, node.id);
    return;
  }
  state.pool.put(node);
  if (node.disturbedUntilMs !== null) state.disturbed.add(node.id);
  const here = state.byNode.get(node.id);
  if (before === undefined) {
    for (const id of here ?? []) {
      const known = state.executions.get(id);
      if (known?.record.holds) state.pool.take(node.id, known.record.grant);
    }
  }
  for (const name of state.perNodeJobs) touchNode(state, name, node.id, before === undefined);
  if (state.drains.has(node.id)) state.dirtyDrains.add(node.id);
  if ((before?.conditionSinceMs ?? null) !== node.conditionSinceMs) touchReplicas(state, here ?? []);
  const isAsHealthy =
    before !== undefined &&
    before.health === node.health &&
    before.reactionAllowed === node.reactionAllowed &&
    before.membership === node.membership;
  if (isAsHealthy) return;
  for (const id of here ?? []) state.dirtyExecutions.add(id);
}

function touchReplicas(state: WorkState, ids: Iterable<string>): void {
  for (const id of ids) {
    const record = state.executions.get(id)?.record;
    const job = record && state.jobs.get(record.job);
    const place = job && placeOf(job, record);
    if (place !== undefined) job?.todo.add(place.index);
    if (job !== undefined) touchJob(state, job);
  }
}

/** Whether two versions of a node are equal for planning. */
function isSameNode(one: WorkNode, other: WorkNode): boolean {
  return one === other || textOf(one) === textOf(other);
}

function textOf({ labels, grantedLabels, ...rest }: WorkNode): string {
  return JSON.stringify([rest, [...labels], [...grantedLabels]]);
}

/** Remove a node that was deleted or has left permanently, and mark its executions for review. */
export function dropNode(state: WorkState, nodeId: string): void {
  state.pool.delete(nodeId);
  for (const id of state.byNode.get(nodeId) ?? []) state.dirtyExecutions.add(id);
  for (const name of state.perNodeJobs) touchNode(state, name, nodeId, false);
}

/** Add or update a job, and mark for review everything that the change may affect. */
export function putJob(state: WorkState, record: Job): void {
  const known = state.jobs.get(record.name);
  if (known === undefined) {
    const request = placementRequest((placedVersion(record) ?? record).spec);
    const job = newJob(record, request);
    state.jobs.set(record.name, job);
    state.pool.use(request);
    if (isPerNode(record)) state.perNodeJobs.add(record.name);
    checkAllNodes(state, job);
    noteRevert(state, record);
    touchJob(state, job);
    return;
  }
  const before = known.record;
  if (before === record) return;
  known.record = record;
  state.endedJobs.delete(record.name);
  noteRevert(state, record);
  if (record.state === "COMPLETED" || record.state === "FAILED") {
    state.endedJobs.add(record.name);
    return;
  }
  const isOtherVersion = before.version !== record.version || isPlacedChanged(before, record);
  if (isOtherVersion || before.spec !== record.spec) replaceRequest(state, known);
  const isRunAgain = before.run !== record.run || before.state !== record.state;
  if (isRunAgain || isOtherVersion || before.count !== record.count) {
    if (isRunAgain || isOtherVersion) {
      forgetOutcomes(known, isRunAgain);
      countStaying(known);
    }
    if (isOtherVersion) for (const nodeId of state.stuckDrains) state.dirtyDrains.add(nodeId);
    for (const place of known.places.values()) {
      indexPlace(known, place);
      known.todo.add(place.index);
    }
    checkAllNodes(state, known);
  }
  touchJob(state, known);
}

function noteRevert(state: WorkState, record: Job): void {
  if (autoRevertTo(record) === null) state.toRevert.delete(record.name);
  else state.toRevert.add(record.name);
}

export function dropJob(state: WorkState, name: string): void {
  const job = state.jobs.get(name);
  if (job === undefined) return;
  state.pool.unuse(job.request);
  state.jobs.delete(name);
  state.perNodeJobs.delete(name);
  state.waitingJobs.delete(name);
  state.dirtyJobs.delete(name);
  state.toRevert.delete(name);
  // Forget the name, so that a new job with the same name is not mistaken for this job.
  state.endedJobs.delete(name);
}

/** Add or update an execution and its node's last report. */
export function putExecution(state: WorkState, record: Execution, observation: Observation | null): void {
  const before = state.executions.get(record.id);
  if (before?.record === record && before.observation === observation) return;
  const job = state.jobs.get(record.job);
  moveGrant(state, job, before?.record ?? null, record);
  const known = before ?? { record, observation, stopSeenAtMs: null, wasReady: observation?.observed === "RUNNING" };
  const wasObserved = before !== undefined && before.observation === observation;
  known.record = record;
  known.observation = observation;
  if (record.desired === "RUN") known.stopSeenAtMs = null;
  if (isTerminal(record.state) && !record.holds) forgetExecution(state, record);
  else rememberExecution(state, known);
  if (!wasObserved || observation?.observed === "ENDED") state.dirtyExecutions.add(record.id);
  if (state.drains.has(record.nodeId)) state.dirtyDrains.add(record.nodeId);
  if (job !== undefined) putInPlace(state, job, known);
}

/** Add an execution that is being placed. It needs no review until its node reports it. */
export function putPlaced(state: WorkState, record: Execution): void {
  const job = state.jobs.get(record.job);
  const known: LiveExecution = { record, observation: null, stopSeenAtMs: null, wasReady: false };
  moveGrant(state, job, null, record);
  rememberExecution(state, known);
  if (state.drains.has(record.nodeId)) state.dirtyDrains.add(record.nodeId);
  if (job === undefined) return;
  const place = placeOf(job, record) ?? newReplicaOf(job, record);
  place.executions.push(known);
  indexPlace(job, place);
  touchJob(state, job);
}

/** Remove an execution that was not committed. */
export function dropExecution(state: WorkState, id: string): void {
  const known = state.executions.get(id);
  if (known === undefined) return;
  const { record } = known;
  const job = state.jobs.get(record.job);
  moveGrant(state, job, record, null);
  forgetExecution(state, record);
  const place = job === undefined ? undefined : placeOf(job, record);
  if (job === undefined || place === undefined) return;
  removeFrom(place, known);
  indexPlace(job, place);
  job.todo.add(place.index);
  touchJob(state, job);
}

export function putObservation(state: WorkState, id: string, observation: Observation): void {
  const known = state.executions.get(id);
  if (known !== undefined) putExecution(state, known.record, observation);
}

export function putDrain(state: WorkState, drain: Drain): void {
  state.drains.set(drain.nodeId, drain);
  if (drain.state !== "DRAINED") state.dirtyDrains.add(drain.nodeId);
}

export function dropDrain(state: WorkState, nodeId: string): void {
  state.drains.delete(nodeId);
  state.dirtyDrains.delete(nodeId);
  state.stuckDrains.delete(nodeId);
}

export function touchJob(state: WorkState, job: LiveJob): void {
  state.dirtyJobs.add(job.record.name);
}

/**
 * The replica with an index. If the replica does not exist, it is created, and bound to the node if a node is given.
 */
export function placeAt(job: LiveJob, index: number, nodeId: string | null): JobReplica {
  const known = job.places.get(index);
  if (known !== undefined) return known;
  const place: JobReplica = {
    index,
    nodeId,
    executions: [],
    last: null,
    lastRanMs: null,
    waitingSinceMs: null,
    ready: null,
    outcome: null,
  };
  job.places.set(index, place);
  if (nodeId !== null) {
    job.replicaByNode.set(nodeId, place);
    job.fresh = Math.max(job.fresh, index + 1);
  }
  indexPlace(job, place);
  return place;
}

/** Forget a replica without executions. */
export function dropPlace(job: LiveJob, place: JobReplica): void {
  job.places.delete(place.index);
  job.todo.delete(place.index);
  job.waiting.delete(place.index);
  job.outdated.delete(place.index);
  job.unready.delete(place.index);
  job.empty.delete(place.index);
  job.surging.delete(place.index);
  if (place.nodeId !== null && job.replicaByNode.get(place.nodeId) === place) job.replicaByNode.delete(place.nodeId);
  else if (place.nodeId === null) job.fresh = Math.min(job.fresh, place.index);
  if (place.outcome === "done") job.done -= 1;
  if (place.outcome === "failed") job.failed -= 1;
}

/** Record the outcome of a replica of a finite job; null if it has not ended. */
export function setOutcome(job: LiveJob, place: JobReplica, outcome: JobReplica["outcome"]): void {
  if (place.outcome === "done") job.done -= 1;
  if (place.outcome === "failed") job.failed -= 1;
  place.outcome = outcome;
  if (outcome === "done") job.done += 1;
  if (outcome === "failed") job.failed += 1;
  indexPlace(job, place);
}

/** Update a job's counts and sets after a change to one of its replicas. */
export function indexPlace(job: LiveJob, place: JobReplica): void {
  const live = liveIn(place);
  if (place.ready !== null && place.ready.id !== live?.record.id) place.ready = null;
  const { type } = job.record.spec;
  if (type !== "service" && type !== "daemon") return;
  const isOld = live !== undefined && isOutdated(live.record, job.record);
  if (isOld) job.outdated.add(place.index);
  else job.outdated.delete(place.index);
  const isThere = live?.record.state === "LIVE";
  const isCurrent = live !== undefined && (!isOld || isPlaced(live.record, job.record));
  if (isThere && isCurrent && place.ready?.isSettled !== true) job.unready.add(place.index);
  else job.unready.delete(place.index);
  const isWanted = place.nodeId !== null || place.index < job.record.count;
  if (live === undefined && place.outcome === null && isWanted) job.empty.add(place.index);
  else job.empty.delete(place.index);
  if (surgedIn(place) !== undefined) job.surging.add(place.index);
  else job.surging.delete(place.index);
}

function newJob(record: Job, request: LiveJob["request"]): LiveJob {
  return {
    ...{ record, request, search: null, places: new Map(), replicaByNode: new Map() },
    ...{ counts: new Map(), staying: new Map(), fresh: 0 },
    ...{
      todo: new Set(),
      nodesToCheck: new Set(),
      waiting: new Set(),
      waitedGains: -1,
      couldFit: null,
      failures: new Map(),
    },
    ...{ outdated: new Set(), unready: new Set(), empty: new Set(), surging: new Set(), drainsWaiting: new Set() },
    ...{ done: 0, failed: 0, unplaced: "" },
  };
}

function replaceRequest(state: WorkState, job: LiveJob): void {
  const before = job.request;
  job.request = placementRequest((placedVersion(job.record) ?? job.record).spec);
  state.pool.use(job.request);
  state.pool.unuse(before);
  job.search = null;
  job.waitedGains = -1;
  job.couldFit = null;
  job.failures.clear();
  if (isPerNode(job.record)) state.perNodeJobs.add(job.record.name);
  else state.perNodeJobs.delete(job.record.name);
}

/** In a new run, forget all outcomes. In a new version, forget only failures, because the replica may now succeed. */
function forgetOutcomes(job: LiveJob, isRunAgain: boolean): void {
  job.unplaced = "";
  for (const place of [...job.places.values()]) {
    if (isRunAgain || place.outcome === "failed") setOutcome(job, place, null);
    if (place.last !== null && isEarlierRun(place.last, job.record)) place.last = null;
    place.waitingSinceMs = null;
  }
}

function checkAllNodes(state: WorkState, job: LiveJob): void {
  if (!isPerNode(job.record) || job.record.state !== "ACTIVE" || job.record.placed) return;
  for (const id of matchingNodes(state.pool, job.request)) job.nodesToCheck.add(id);
}

/**
 * Mark a job's replica on a node for review. If the node has no replica but the job may have to run there, mark the
 * node instead. An ops job that has been placed ignores nodes that are added later.
 */
function touchNode(state: WorkState, name: string, nodeId: string, isNew: boolean): void {
  const job = state.jobs.get(name);
  if (job === undefined || job.record.state !== "ACTIVE") return;
  const place = job.replicaByNode.get(nodeId);
  if (place !== undefined) job.todo.add(place.index);
  else if (job.record.spec.type === "daemon" || (isNew && !job.record.placed)) job.nodesToCheck.add(nodeId);
  else return;
  touchJob(state, job);
}

function putInPlace(state: WorkState, job: LiveJob, known: LiveExecution): void {
  const { record, observation } = known;
  const place = placeOf(job, record) ?? newReplicaOf(job, record);
  const at = place.executions.indexOf(known);
  if (isTerminal(record.state)) {
    if (at >= 0) place.executions.splice(at, 1);
    putLast(job, place, record, observation);
  } else if (at < 0) {
    // Undo the end of the execution, which had ended in a plan that is now being reverted.
    if (place.last?.id === record.id) takeLast(job, place, place.last);
    place.executions.push(known);
    place.executions.sort((one, other) => (isNewer(other.record, one.record) ? -1 : 1));
  }
  indexPlace(job, place);
  job.todo.add(place.index);
  touchJob(state, job);
}

/**
 * Create the replica of an execution. Replicas of ops jobs and daemons are identified by their nodes, because an index
 * may have been reused.
 */
function newReplicaOf(job: LiveJob, { index, nodeId }: Execution): JobReplica {
  if (!isPerNode(job.record)) return placeAt(job, index, null);
  return placeAt(job, job.places.has(index) ? job.fresh : index, nodeId);
}

function putLast(job: LiveJob, place: JobReplica, record: Execution, observation: Observation | null): void {
  if (place.last !== null && !isNewer(record, place.last)) return;
  if (isCounted(job, record)) {
    if (job.failures.size < MOST_FAILED_NODES || job.failures.has(record.nodeId)) {
      job.failures.set(record.nodeId, (job.failures.get(record.nodeId) ?? 0) + 1);
    }
  }
  const isPast =
    isEarlierRun(record, job.record) && (job.record.spec.type === "batch" || job.record.spec.type === "ops");
  if (isPast) return;
  place.last = record;
  place.lastRanMs = ranMsOf(record, observation);
}

/** Undo putLast() when an end is reverted. */
function takeLast(job: LiveJob, place: JobReplica, last: Execution): void {
  place.last = null;
  if (!isCounted(job, last)) return;
  const failures = (job.failures.get(last.nodeId) ?? 0) - 1;
  if (failures > 0) job.failures.set(last.nodeId, failures);
  else job.failures.delete(last.nodeId);
}

/** Whether an end counts as a failure on its node. */
function isCounted({ record: job }: LiveJob, record: Execution): boolean {
  return !isEarlierRun(record, job) && isFailure(record, job.spec.type);
}

function removeFrom(place: JobReplica, known: LiveExecution): void {
  const at = place.executions.indexOf(known);
  if (at >= 0) place.executions.splice(at, 1);
}
