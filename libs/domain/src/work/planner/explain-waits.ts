import { stateWords } from "../../state-words.ts";
import { isTerminal } from "../execution-state.ts";
import { refusalsText } from "../explain.ts";
import { PlacementSearch } from "../placement/placement-search.ts";
import { countRefusals } from "../placement/refusals.ts";
import { nextInPlace } from "../retry-replica.ts";
import { groupWaits, type OneWait, type Wait } from "../wait.ts";
import { drainWait } from "./explain-drain-wait.ts";
import { lossWait } from "./explain-loss-wait.ts";
import { stoppingWait } from "./explain-stopping-wait.ts";
import { UNSTARTED_STAYS_MS } from "./review-replica.ts";
import { takesWork, untouchedNodes } from "./vacant-nodes.ts";
import { jobWhy, nodeWhy, scheduling, type WaitContext, type WaitFacts, waitOf } from "./wait-context.ts";
import {
  isOutdated,
  isPerNode,
  isPlaced,
  isReady,
  isRefused,
  isUpdating,
  type JobReplica,
  type LiveExecution,
  type LiveJob,
  liveIn,
  placedVersion,
  type WorkState,
} from "./work-state.ts";

/** Which part of a job to explain: one execution, the executions on one node or, if both are null, the whole job. */
export interface WaitScope {
  readonly executionId: string | null;
  readonly nodeId: string | null;
}

/** Explain why executions of a job wait, move or are lost. Empty if none do, or if the job is unknown. */
export function explainWaits(
  state: WorkState,
  name: string,
  facts: WaitFacts,
  scope: WaitScope = { executionId: null, nodeId: null },
): readonly Wait[] {
  const job = state.jobs.get(name);
  if (job === undefined) return [];
  const context = waitContext(state, job, facts);
  const isWhole = scope.executionId === null && scope.nodeId === null;
  const found = [
    ...[...job.places.values()].flatMap((place) => replicaWaits(context, place)),
    ...untouchedNodes(state, job).map((nodeId) => emptyWait(context, job.record.submittedAtMs, { nodeId, last: null })),
    ...[...state.executions.values()].flatMap((known) => unconfirmedWait(context, known)),
  ].filter(({ executionId, nodeId }) => {
    if (scope.executionId !== null) return executionId === scope.executionId;
    return scope.nodeId === null || nodeId === scope.nodeId;
  });
  const fresh = isWhole ? untouchedReplicas(job).map(() => emptyWait(context, job.record.submittedAtMs, null)) : [];
  const asked = scope.nodeId === null ? jobWhy(name) : nodeWhy(scope.nodeId);
  // Do not advise the command whose output this is.
  return groupWaits([...found, ...fresh]).map((one) => (one.command === asked ? { ...one, command: "" } : one));
}

function waitContext(state: WorkState, job: LiveJob, facts: WaitFacts): WaitContext {
  let refusals: string | null | undefined;
  return {
    ...{ state, job, facts },
    refusals: () => {
      if (refusals === undefined) {
        const isFree = new PlacementSearch(state.pool, job.request, job).best() !== null;
        refusals = isFree ? null : refusalsText(countRefusals(state.pool, job.request, job.counts));
      }
      return refusals;
    },
    isPaced: replicasInTransit(job) >= job.record.spec.update.maxParallel,
  };
}

/**
 * The number of replicas of a service or daemon that are not ready. Unlike inTransit(), this also works for a memory
 * that has planned nothing.
 */
function replicasInTransit(job: LiveJob): number {
  const places = [...job.places.values()].filter((place) => {
    const live = liveIn(place);
    const isWanted = isPerNode(job.record) || place.index < job.record.count;
    if (!isWanted) return false;
    return live === undefined || (isPlaced(live.record, job.record) && !isReady(live, job.record));
  });
  return places.length + untouchedReplicas(job).length;
}

/** The indexes of replicas that have never had an execution. */
function untouchedReplicas({ record, places }: LiveJob): readonly number[] {
  if (isPerNode(record) || record.state !== "ACTIVE") return [];
  const indexes: number[] = [];
  for (let index = 0; index < record.count; index += 1) if (!places.has(index)) indexes.push(index);
  return indexes;
}

function replicaWaits(context: WaitContext, place: JobReplica): readonly OneWait[] {
  const { job } = context;
  const { record } = job;
  const live = liveIn(place);
  const stopping = place.executions
    .filter((known) => known !== live && known.record.desired === "STOP")
    .map((known) => stoppingWait(context, known));
  if (record.state !== "ACTIVE" || (!isPerNode(record) && place.index >= record.count)) return stopping;
  if (live === undefined) return [...stopping, ...vacantWaits(context, place)];
  return [...stopping, ...liveWaits(context, place, live)];
}

/**
 * Explain what an execution that should run waits for. A halted update is reported for each execution that it affects.
 */
function liveWaits(context: WaitContext, place: JobReplica, live: LiveExecution): readonly OneWait[] {
  const first =
    lossWait(context, live) ??
    drainWait(context, live) ??
    unstartedWait(context, place, live) ??
    unreadyWait(context, live);
  const update = updateWait(context, live);
  return [...(first === null ? [] : [first]), ...(update === null ? [] : [update])];
}

/** Explain what a replica without an execution waits for. */
function vacantWaits(context: WaitContext, place: JobReplica): readonly OneWait[] {
  const { job, facts } = context;
  const { record } = job;
  const { last } = place;
  // Report no wait, because a daemon wants no execution on a node that takes no work, such as a drained node.
  if (record.spec.type === "daemon" && place.nodeId !== null && !takesWork(context.state, job, place.nodeId)) return [];
  const blocking = place.executions.find((known) => known.record.replacedBy === null);
  if (blocking !== undefined && record.spec.type !== "service") {
    const { id, nodeId } = blocking.record;
    const text = "the previous execution has not ended; only services start a new one before it ends";
    const sinceMs = facts.stopsOrderedAtMs.get(id) ?? facts.losses.get(nodeId)?.sinceMs ?? null;
    return [waitOf({ reason: "EARLIER_NOT_ENDED", text, executionId: id, nodeId, sinceMs, command: nodeWhy(nodeId) })];
  }
  if (last === null) return [emptyWait(context, record.submittedAtMs, place)];
  const next = nextInPlace(last, place.lastRanMs, job.request.spec);
  const of = { executionId: last.id, nodeId: last.nodeId, sinceMs: last.endedAtMs };
  if (next.kind === "done") return [];
  if (!isPlaced(last, record)) return [emptyWait(context, Math.max(record.submittedAtMs, last.endedAtMs ?? 0), place)];
  if (next.kind === "given-up") {
    const isKept = record.spec.type === "service" || record.spec.type === "daemon";
    // Report no wait for a batch or ops job that has ended, because the end is its result.
    if (!isKept) return [];
    const why = last.message || stateWords(last.reason);
    const times = last.attempt === 0 ? "once" : `${last.attempt + 1} times`;
    const text = `it failed ${times}, and retry.attempts allows no further attempt: ${why}`;
    return [waitOf({ ...of, reason: "RETRIES_USED_UP", text, command: `rollcall job restart ${record.name}` })];
  }
  if (next.notBeforeMs > facts.nowMs) {
    const text = `it failed and will be started again after a delay: ${last.message || stateWords(last.reason)}`;
    const command = `rollcall job logs ${last.id}`;
    return [waitOf({ ...of, reason: "RETRY_BACKOFF", text, untilMs: next.notBeforeMs, command })];
  }
  return [emptyWait(context, Math.max(last.endedAtMs ?? 0, next.notBeforeMs), place)];
}

/** Explain a replica that needs a node. */
function emptyWait(context: WaitContext, sinceMs: number, place: Pick<JobReplica, "nodeId" | "last"> | null): OneWait {
  const { job, state } = context;
  const { name, spec, version, violations = [] } = job.record;
  const of = { executionId: place?.last?.id ?? null, nodeId: place?.nodeId ?? null, sinceMs };
  if (isRefused(job.record)) {
    const text = `the rules refuse the job: ${violations.map(({ message }) => message).join("; ")}`;
    return waitOf({ ...of, reason: "JOB_REFUSED", text, command: `rollcall job describe ${name}` });
  }
  if (placedVersion(job.record) === null) {
    const text =
      `the update to version ${version} halted, and no earlier version has ever been ready, so none can ` +
      "run instead";
    const command = `rollcall job history ${name}`;
    return waitOf({ ...of, reason: "UPDATE_HALTED", text, sinceMs: context.facts.haltedAtMs, command });
  }
  const isFree =
    place !== null && place.nodeId !== null
      ? new PlacementSearch(state.pool, job.request, job).onNode(place.nodeId) !== null
      : context.refusals() === null;
  if (isFree) return scheduling(of);
  const why = context.refusals();
  const text =
    place !== null && place.nodeId !== null && why === null
      ? `node ${place.nodeId} has no room for it`
      : `no node fits: ${why}`;
  const untilMs = mayTimeOut(spec.type) && spec.queueTimeoutMs !== null ? sinceMs + spec.queueTimeoutMs : null;
  return waitOf({ ...of, reason: "NO_NODE_FITS", text, untilMs, command: "rollcall node list --show work" });
}

function mayTimeOut(type: LiveJob["record"]["spec"]["type"]): boolean {
  return type === "batch" || type === "ops";
}

/** Explain an execution that its node has not started. */
function unstartedWait(context: WaitContext, place: JobReplica, live: LiveExecution): OneWait | null {
  const { state, facts } = context;
  const { record, observation } = live;
  if (observation !== null && observation.observed !== "STARTING") return null;
  const node = state.pool.get(record.nodeId)?.node;
  const of = { executionId: record.id, nodeId: record.nodeId, sinceMs: record.createdAtMs };
  const conditionSinceMs = node?.conditionSinceMs ?? null;
  if (conditionSinceMs !== null) {
    const said = facts.conditions.get(record.nodeId) ?? "a condition";
    const dueAtMs = Math.max(conditionSinceMs, record.createdAtMs) + UNSTARTED_STAYS_MS;
    const then = place.nodeId === null ? "it will be placed elsewhere" : "it cannot be placed elsewhere";
    const isDue = dueAtMs <= facts.nowMs;
    const why = isDue && place.nodeId === null ? context.refusals() : null;
    const text = `its node reports ${said}; ${why === null ? then : `no other node fits: ${why}`}`;
    const untilMs = place.nodeId === null && !isDue ? dueAtMs : null;
    return waitOf({ ...of, reason: "NODE_CONDITION", text, untilMs, command: nodeWhy(record.nodeId) });
  }
  if (observation !== null) return null;
  const away = node?.connection === "CONNECTED" ? "" : ", which is not connected,";
  const text = `its node${away} has not reported it yet`;
  const untilMs = deadlineOf(context, live);
  return waitOf({ ...of, reason: "NOT_STARTED", text, untilMs, command: nodeWhy(record.nodeId) });
}

function unreadyWait(context: WaitContext, live: LiveExecution): OneWait | null {
  const { job } = context;
  const { record, observation } = live;
  const { type } = job.record.spec;
  const isKept = type === "service" || type === "daemon";
  if (isReady(live, job.record) || (!isKept && observation?.observed !== "STARTING")) return null;
  const said = observation?.message ? `: ${observation.message}` : "";
  const text = observation?.observed === "STARTING" ? `it is starting${said}` : `it runs and is not ready${said}`;
  return waitOf({
    ...{ reason: "NOT_READY", text, executionId: record.id, nodeId: record.nodeId, sinceMs: record.createdAtMs },
    ...{ untilMs: deadlineOf(context, live), command: `rollcall job logs ${record.id}` },
  });
}

/** When the update halts unless this execution becomes ready first; null if there is no deadline. */
function deadlineOf({ job, facts }: WaitContext, { record }: LiveExecution): number | null {
  if (!isUpdating(job) || isOutdated(record, job.record)) return null;
  const deadlineAtMs = record.createdAtMs + job.record.spec.update.readyDeadlineMs;
  // Ignore a deadline in the past. The update would have halted at the deadline, unless the execution was ready once.
  return deadlineAtMs > facts.nowMs ? deadlineAtMs : null;
}

/** Explain an execution that an update will replace. */
function updateWait({ job, facts, isPaced, refusals }: WaitContext, { record }: LiveExecution): OneWait | null {
  const { name, spec, version, halted, readyVersion, submittedAtMs } = job.record;
  const isRolled = spec.type === "service" || spec.type === "daemon";
  if (!isRolled || !isOutdated(record, job.record)) return null;
  const of = { executionId: record.id, nodeId: record.nodeId };
  if (halted !== null) {
    const text = `it is not replaced, because the update to version ${version} halted: ${halted}`;
    const isRevertible = readyVersion !== null && readyVersion !== version;
    const command = isRevertible ? `rollcall job revert ${name}` : "rollcall job run FILE";
    return waitOf({ ...of, reason: "UPDATE_HALTED", text, sinceMs: facts.haltedAtMs, command });
  }
  const { maxParallel, minReadyMs, readyDeadlineMs } = spec.update;
  const pace = `update.maxParallel replaces ${maxParallel} at a time; each must be ready for ${minReadyMs / 1_000} s`;
  const full = isPaced ? null : refusals();
  const room = full === null ? "" : `; it is stopped before its replacement starts, because no node fits both: ${full}`;
  const text = `it waits to be replaced in the update to version ${version}: ${pace}${room}`;
  // Assume that each group becomes ready just before its deadline.
  const groups = Math.ceil(job.outdated.size / Math.max(1, maxParallel));
  const untilMs = facts.nowMs + groups * (readyDeadlineMs + minReadyMs);
  return waitOf({ ...of, reason: "UPDATE_PACE", text, sinceMs: submittedAtMs, untilMs, command: jobWhy(name) });
}

/** Explain an execution whose end was recorded although its node has not confirmed it. */
function unconfirmedWait({ job }: WaitContext, { record }: LiveExecution): readonly OneWait[] {
  if (record.job !== job.record.name || !isTerminal(record.state) || !record.holds) return [];
  const text =
    "its node has not confirmed that it ended; its resources stay allocated until the node confirms it, or is deleted";
  const of = { executionId: record.id, nodeId: record.nodeId, sinceMs: record.endedAtMs };
  return [waitOf({ ...of, reason: "END_UNCONFIRMED", text, command: nodeWhy(record.nodeId) })];
}
