import type { Execution, Observation } from "../execution.ts";
import { Heap } from "../heap.ts";
import type { Drain, Job, VersionSpec } from "../job.ts";
import { mismatches, type PlacementReason } from "../placement/node-class.ts";
import { NodePool } from "../placement/node-pool.ts";
import type { PlacementRequest } from "../placement/placement-request.ts";
import type { PlacementSearch } from "../placement/placement-search.ts";
import { couldFit } from "../placement/refusals.ts";

/** An execution that holds resources or has no final state. */
export interface LiveExecution {
  record: Execution;
  observation: Observation | null;
  /**
   * When a drain first saw that the node was ordered to stop the execution; null if there is no order, or no drain has
   * seen it.
   */
  stopSeenAtMs: number | null;
  /** Whether the execution has been ready once, or may have been before this memory knew it. */
  wasReady: boolean;
}

/** One replica of a job. A batch job or service has one replica per index, an ops job or daemon one per node. */
export interface JobReplica {
  readonly index: number;
  /** The node of a replica of an ops job or daemon; null for other types. */
  readonly nodeId: string | null;
  /** Executions without a final state, the oldest first. */
  readonly executions: LiveExecution[];
  /** The newest execution that has ended; `lastRanMs` is how long it ran. */
  last: Execution | null;
  lastRanMs: number | null;
  /** When the replica started to wait for a node; null if it does not wait. */
  waitingSinceMs: number | null;
  /** The ready execution, since when it has been ready, and whether that is long enough; null if none is ready. */
  ready: { readonly id: string; readonly sinceMs: number; isSettled: boolean } | null;
  /** How the replica of a finite job ended; null if it has not ended. */
  outcome: "done" | "failed" | null;
}

export interface LiveJob {
  record: Job;
  request: PlacementRequest;
  /** The search for a node; created when first needed, and again after the request has changed. */
  search: PlacementSearch | null;
  readonly places: Map<number, JobReplica>;
  /** The replicas of an ops job or daemon, keyed by node. */
  readonly replicaByNode: Map<string, JobReplica>;
  /** How many executions hold resources on each node. */
  readonly counts: Map<string, number>;
  /**
   * How many of these executions stay on each node. An execution stays if it was not ordered to stop and no update is
   * about to replace it.
   */
  readonly staying: Map<string, number>;
  /** The first index that may not have been reviewed. All lower indexes have been reviewed. */
  fresh: number;
  /** Replicas to review. */
  readonly todo: Set<number>;
  /** Nodes on which an ops job or daemon may have to run. */
  readonly nodesToCheck: Set<string>;
  /** Replicas that wait for a node. */
  readonly waiting: Set<number>;
  /** The pool's gains when a replica last found no node. As long as the pool has the same gains, no replica fits. */
  waitedGains: number;
  /**
   * Whether any node could run an execution if nothing else ran on the node, and the pool's gains when this was
   * determined.
   */
  couldFit: { readonly gains: number; readonly fits: boolean } | null;
  /** How many of the job's executions have failed on each node. */
  readonly failures: Map<string, number>;
  /** Replicas whose execution an update replaces, or would replace if it had not halted. */
  readonly outdated: Set<number>;
  /** Replicas of a service or daemon that run the right version but have not been ready for long enough. */
  readonly unready: Set<number>;
  /** Replicas of a service or daemon without a wanted execution, except those that were given up. */
  readonly empty: Set<number>;
  /** Replicas that keep an old execution until its replacement is ready. */
  readonly surging: Set<number>;
  /** The number of replicas of a finite job that have completed; `failed` is the number that have failed. */
  done: number;
  failed: number;
  /** Why replicas were given up without finding a node, for people; "" if none were. */
  unplaced: string;
  /** Draining nodes that wait until fewer replicas of the job are in transit. */
  readonly drainsWaiting: Set<string>;
}

/** A review that is due at a given time. */
export interface DueCheck {
  readonly atMs: number;
  readonly kind: "job" | "drain" | "node";
  readonly name: string;
  /** The replica to review; null for the whole job. */
  readonly index: number | null;
}

/** The planner's memory: the data from the store, and the items to review. */
export interface WorkState {
  readonly pool: NodePool;
  readonly jobs: Map<string, LiveJob>;
  readonly executions: Map<string, LiveExecution>;
  readonly byNode: Map<string, Set<string>>;
  readonly drains: Map<string, Drain>;
  /** Nodes that count as disturbed. The planner removes a node once its time as disturbed has passed. */
  readonly disturbed: Set<string>;
  readonly perNodeJobs: Set<string>;
  /** What to review: executions, jobs and drains. */
  readonly dirtyExecutions: Set<string>;
  readonly dirtyJobs: Set<string>;
  readonly dirtyDrains: Set<string>;
  /** Jobs with replicas that wait for a node. Jobs that have waited longest come first. */
  readonly waitingJobs: Set<string>;
  /** Draining nodes with executions of services that found no other node. */
  readonly stuckDrains: Set<string>;
  /** The pool's gains when `stuckDrains` were last reviewed. */
  stuckGains: number;
  readonly due: Heap<DueCheck>;
  /** The earliest scheduled time of each review. */
  readonly dueAtMs: Map<string, number>;
  /** Jobs that have ended. The next plan, which starts after their end has been committed, forgets their replicas. */
  readonly endedJobs: Set<string>;
  /** Jobs to revert automatically because their updates halted. */
  readonly toRevert: Set<string>;
  /** Searches that jobs with the same request share. */
  readonly searches: Map<string, PlacementSearch>;
}

export function workState(): WorkState {
  return {
    pool: new NodePool(),
    jobs: new Map(),
    executions: new Map(),
    byNode: new Map(),
    drains: new Map(),
    disturbed: new Set(),
    perNodeJobs: new Set(),
    dirtyExecutions: new Set(),
    dirtyJobs: new Set(),
    dirtyDrains: new Set(),
    waitingJobs: new Set(),
    stuckDrains: new Set(),
    stuckGains: -1,
    due: new Heap((one, other) => one.atMs < other.atMs),
    dueAtMs: new Map(),
    endedJobs: new Set(),
    toRevert: new Set(),
    searches: new Map(),
  };
}

/** Add an execution, also to the index of executions by node. */
export function rememberExecution(state: WorkState, known: LiveExecution): void {
  const { id, nodeId } = known.record;
  state.executions.set(id, known);
  const here = state.byNode.get(nodeId);
  if (here === undefined) state.byNode.set(nodeId, new Set([id]));
  else here.add(id);
}

/** Remove an execution, also from the index of executions by node. */
export function forgetExecution(state: WorkState, { id, nodeId }: Execution): void {
  state.executions.delete(id);
  state.dirtyExecutions.delete(id);
  const here = state.byNode.get(nodeId);
  here?.delete(id);
  if (here?.size === 0) state.byNode.delete(nodeId);
}

/**
 * The wanted execution of a replica; undefined if there is none. This is never an execution that was replaced and is
 * only kept for now.
 */
export function liveIn({ executions }: JobReplica): LiveExecution | undefined {
  return executions.findLast(({ record }) => record.desired === "RUN" && record.replacedBy === null);
}

/** The old execution of a replica that an update keeps until its replacement is ready; undefined if there is none. */
export function surgedIn({ executions }: JobReplica): LiveExecution | undefined {
  return executions.findLast(isSurged);
}

/** Whether an update keeps an execution until its replacement is ready. */
export function isSurged({ record }: LiveExecution): boolean {
  const isKept = record.replacedBy !== null && record.desired === "RUN" && record.state === "LIVE";
  return isKept && isReplacedByUpdate(record);
}

/** Whether an execution was stopped or replaced by an update or a restart of its job. */
export function isReplacedByUpdate({ reason }: Pick<Execution, "reason">): boolean {
  return reason === "JOB_UPDATED" || reason === "JOB_RESTARTED";
}

/** The replica of an execution in its job; undefined if the job has no such replica. */
export function placeOf(job: LiveJob, { index, nodeId }: Execution): JobReplica | undefined {
  return isPerNode(job.record) ? job.replicaByNode.get(nodeId) : job.places.get(index);
}

/** Whether an update or restart replaces an execution because of its version or run. */
export function isOutdated(
  execution: Pick<Execution, "version" | "run">,
  job: Pick<Job, "version" | "run" | "sameVersions">,
): boolean {
  const isOther = execution.version !== job.version && !(job.sameVersions ?? []).includes(execution.version);
  return isOther || isEarlierRun(execution, job);
}

/**
 * The version of a job to place: the newest version or, if the update to it halted, the last version that became
 * ready. Null if the update halted and there is no version to fall back to.
 */
export function placedVersion(job: Job): VersionSpec | null {
  const { version, spec, halted, readyVersion, fallback } = job;
  if (halted === null || readyVersion === version) return { version, spec };
  // Do not fall back from a daemon to a service or vice versa: their replicas differ.
  return fallback?.spec.type === spec.type ? fallback : null;
}

/**
 * Whether a change to a job changes which version is placed, because an update has halted or the fallback has become
 * known.
 */
export function isPlacedChanged(before: Job, after: Job): boolean {
  return (
    (before.halted === null) !== (after.halted === null) ||
    placedVersion(before)?.version !== placedVersion(after)?.version
  );
}

/** Whether an execution has the version and run that its job places now. */
export function isPlaced(execution: Pick<Execution, "version" | "run">, job: Job): boolean {
  if (job.halted === null) return !isOutdated(execution, job);
  return execution.version === placedVersion(job)?.version && !isEarlierRun(execution, job);
}

/** Whether an update or restart of a service or daemon is in progress. It halts if a new execution fails. */
export function isUpdating({ record, outdated }: LiveJob): boolean {
  const { state, halted, version, readyVersion } = record;
  if (!isKept(record) || state !== "ACTIVE" || halted !== null) return false;
  return outdated.size > 0 || (readyVersion !== null && readyVersion !== version);
}

/** Whether the job runs until it is stopped, as services and daemons do. */
export function isKept({ spec: { type } }: Pick<Job, "spec">): boolean {
  return type === "service" || type === "daemon";
}

/** Whether an execution belongs to an earlier run of its job. */
export function isEarlierRun({ run }: Pick<Execution, "run">, job: Pick<Job, "run">): boolean {
  return run < job.run;
}

/** Whether an execution is ready, according to its node's last report. */
export function isReady({ record, observation }: LiveExecution, { spec, fallback }: Job): boolean {
  if (record.state !== "LIVE") return false;
  const { checked } = record.version === fallback?.version ? fallback.spec : spec;
  return observation?.observed === "READY" || (!checked && observation?.observed === "RUNNING");
}

/**
 * How many replicas of a service or daemon are in transit. The number is limited when replicas are moved or updated.
 */
export function inTransit(job: LiveJob): number {
  return job.unready.size + job.empty.size + untriedIn(job);
}

/** How many replicas have not been reviewed yet. */
export function untriedIn({ record, fresh }: LiveJob): number {
  return isPerNode(record) ? 0 : Math.max(0, record.count - fresh);
}

/**
 * Whether the current rules refuse a job that an older release accepted. Running executions of the job continue, but
 * no new ones are placed.
 */
export function isRefused({ violations = [] }: Job): boolean {
  return violations.length > 0;
}

/**
 * Whether no executions of a job are placed, because the rules refuse it, or because its update halted and there is no
 * version to fall back to.
 */
export function isBarred(job: Job): boolean {
  return isRefused(job) || placedVersion(job) === null;
}

/** Whether a job has one replica per node. */
export function isPerNode({ spec }: Job): boolean {
  return spec.type === "ops" || spec.type === "daemon";
}

/** Whether a job ends when all its replicas have ended. */
export function mayEnd({ spec }: Job): boolean {
  return spec.type === "batch" || spec.type === "ops";
}

/** Whether any node could run an execution of a job if nothing else ran on the node. */
export function jobCouldFit(state: WorkState, job: LiveJob): boolean {
  const { gains } = state.pool;
  if (job.couldFit?.gains !== gains) job.couldFit = { gains, fits: couldFit(state.pool, job.request) };
  return job.couldFit.fits;
}

/** Whether a node meets a job's constraints, even if it takes no work now. */
export function nodeMatches(state: WorkState, job: LiveJob, nodeId: string): boolean {
  const of = state.pool.classOf(nodeId);
  if (of === undefined) return false;
  const named = job.request.spec.constraints.nodeId;
  if (named !== null && named !== nodeId) return false;
  const { executors } = of.facts;
  // Do not stop executions while their node offers nothing, for example because its keeper is away, or while its GPUs
  // are unknown.
  return mismatches(of.facts, job.request).every(
    (reason) => reason === "GPUS_UNKNOWN" || (executors.length === 0 && OFFERS.has(reason)),
  );
}

const OFFERS: ReadonlySet<PlacementReason> = new Set([
  "EXECUTOR_NOT_OFFERED",
  "USER_NOT_ALLOWED",
  "DIRECTORY_NOT_ALLOWED",
  "SECRET_NOT_ALLOWED",
]);
