import type { ExecutionRecord, Observation } from "../execution.ts";
import { Heap } from "../heap.ts";
import type { DrainRecord, JobRecord, VersionSpec } from "../job-record.ts";
import { mismatches, type PlacementReason } from "../placement/node-class.ts";
import { NodePool } from "../placement/node-pool.ts";
import type { PlacementRequest } from "../placement/placement-request.ts";
import type { PlacementSearch } from "../placement/placement-search.ts";
import { couldFit } from "../placement/refusals.ts";

/** An execution that holds resources or has no final state. */
export interface KnownExecution {
  record: ExecutionRecord;
  observation: Observation | null;
  /** When a drain saw first that its node was told to stop it; null for what should run, or what no drain has seen. */
  stopSeenAtMs: number | null;
  /** Whether it was ready before, or could have been before this memory knew it. */
  wasReady: boolean;
}

/** One place in a job: an index of a batch job or service, a node of an ops job or daemon. */
export interface Place {
  readonly index: number;
  /** The node of an ops job's or daemon's place; null for others. */
  readonly nodeId: string | null;
  /** Executions without a final state, the oldest first. */
  readonly executions: KnownExecution[];
  /** The newest that has ended, and how long it ran. */
  last: ExecutionRecord | null;
  lastRanMs: number | null;
  /** Since when it has waited for a node; null while it does not. */
  waitingSinceMs: number | null;
  /** The execution that was seen to be ready, since when, and whether that was long enough ago. */
  ready: { readonly id: string; readonly sinceMs: number; isSettled: boolean } | null;
  /** How it ended, in a job that ends; null before. */
  outcome: "done" | "failed" | null;
}

export interface KnownJob {
  record: JobRecord;
  request: PlacementRequest;
  /** Made when it is first needed, and again for another request. */
  search: PlacementSearch | null;
  readonly places: Map<number, Place>;
  /** The places of an ops job or daemon by node. */
  readonly placeByNode: Map<string, Place>;
  /** Executions that hold resources, by node. */
  readonly counts: Map<string, number>;
  /** Those of them, by node, that are to stay: not told to stop, and not to be replaced by an update. */
  readonly staying: Map<string, number>;
  /** All places below it have been looked at. */
  fresh: number;
  /** Places to look at. */
  readonly todo: Set<number>;
  /** Nodes that an ops job or daemon may have to be placed on. */
  readonly nodesToCheck: Set<string>;
  /** Places that found no node. */
  readonly waiting: Set<number>;
  /** The pool's gains when a place found no node: as long as they are the same, nothing else will fit. */
  waitedGains: number;
  /** Whether any node could run an execution if it were empty, and the pool's gains when that was looked for. */
  couldFit: { readonly gains: number; readonly fits: boolean } | null;
  /** Failures of its executions by node. */
  readonly failures: Map<string, number>;
  /** Places that run what an update replaces, or would if it had not halted. */
  readonly outdated: Set<number>;
  /** Places of a service or daemon that run what they should, and have not been ready for long enough. */
  readonly unready: Set<number>;
  /** Places of a service or daemon in which nothing runs, except those that were given up. */
  readonly empty: Set<number>;
  /** Places that keep an execution until its replacement in an update is ready. */
  readonly surging: Set<number>;
  /** Places that have ended, in a job that ends. */
  done: number;
  failed: number;
  /** Why places found no node, for people; "" as long as none has failed for that. */
  unplaced: string;
  /** Draining nodes that wait until fewer places are under way. */
  readonly drainsWaiting: Set<string>;
}

/** Something that happens by time alone. */
export interface LookDue {
  readonly atMs: number;
  readonly kind: "job" | "drain" | "node";
  readonly name: string;
  /** The place to look at; null for the job as a whole. */
  readonly index: number | null;
}

/** The memory of work: what the record has, and what to look at. */
export interface WorkState {
  readonly pool: NodePool;
  readonly jobs: Map<string, KnownJob>;
  readonly executions: Map<string, KnownExecution>;
  readonly byNode: Map<string, Set<string>>;
  readonly drains: Map<string, DrainRecord>;
  /** Nodes that count as disturbed until a time. */
  readonly disturbed: Set<string>;
  readonly perNodeJobs: Set<string>;
  /** To be looked at: executions to settle, jobs, drains. */
  readonly dirtyExecutions: Set<string>;
  readonly dirtyJobs: Set<string>;
  readonly dirtyDrains: Set<string>;
  /** Jobs with places that found no node, in the order in which they began to wait. */
  readonly waitingJobs: Set<string>;
  /** Drains with services that found no node elsewhere. */
  readonly stuckDrains: Set<string>;
  /** The pool's gains when these were looked at last. */
  stuckGains: number;
  readonly due: Heap<LookDue>;
  /** The earliest time at which each thing is due. */
  readonly dueAtMs: Map<string, number>;
  /** Jobs whose places are forgotten at the next plan, when their end has been committed. */
  readonly endedJobs: Set<string>;
  /** Jobs that are to be reverted, since their updates halted. */
  readonly toRevert: Set<string>;
  /** Searches that jobs share which ask for the same. */
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

/** Keep an execution, also by its node. */
export function rememberExecution(state: WorkState, known: KnownExecution): void {
  const { id, nodeId } = known.record;
  state.executions.set(id, known);
  const here = state.byNode.get(nodeId);
  if (here === undefined) state.byNode.set(nodeId, new Set([id]));
  else here.add(id);
}

/** The opposite of rememberExecution(). */
export function forgetExecution(state: WorkState, { id, nodeId }: ExecutionRecord): void {
  state.executions.delete(id);
  state.dirtyExecutions.delete(id);
  const here = state.byNode.get(nodeId);
  here?.delete(id);
  if (here?.size === 0) state.byNode.delete(nodeId);
}

/** The execution that is wanted in a place; undefined for none. One that was replaced, and kept, is not it. */
export function liveIn({ executions }: Place): KnownExecution | undefined {
  return executions.findLast(({ record }) => record.desired === "RUN" && record.replacedBy === null);
}

/** The execution that an update keeps in a place until its replacement is ready; undefined for none. */
export function surgedIn({ executions }: Place): KnownExecution | undefined {
  return executions.findLast(isSurged);
}

/** Whether an update keeps an execution until its replacement is ready. */
export function isSurged({ record }: KnownExecution): boolean {
  const isKept = record.replacedBy !== null && record.desired === "RUN" && record.state === "LIVE";
  return isKept && isReplacedByUpdate(record);
}

/** Whether an execution was stopped or replaced by an update or a restart of its job. */
export function isReplacedByUpdate({ reason }: Pick<ExecutionRecord, "reason">): boolean {
  return reason === "JOB_UPDATED" || reason === "JOB_RESTARTED";
}

/** The place that an execution has in its job; undefined for none that is known. */
export function placeOf(job: KnownJob, { index, nodeId }: ExecutionRecord): Place | undefined {
  return isPerNode(job.record) ? job.placeByNode.get(nodeId) : job.places.get(index);
}

/** Whether an execution is of a version, or of a run of the job, that an update replaces. */
export function isOutdated(
  execution: Pick<ExecutionRecord, "version" | "run">,
  job: Pick<JobRecord, "version" | "run" | "sameVersions">,
): boolean {
  const isOther = execution.version !== job.version && !(job.sameVersions ?? []).includes(execution.version);
  return isOther || isEarlierRun(execution, job);
}

/**
 * What new executions of a job run: the newest version, or the last one that became ready once the update to the newest
 * has halted. Null when the update halted and no other version can be placed.
 */
export function placedVersion(job: JobRecord): VersionSpec | null {
  const { version, spec, halted, readyVersion, fallback } = job;
  if (halted === null || readyVersion === version) return { version, spec };
  // A service has other places than a daemon.
  return fallback?.spec.type === spec.type ? fallback : null;
}

/** Whether new executions are of another version: an update has halted, or what to place instead is known now. */
export function isPlacedChanged(before: JobRecord, after: JobRecord): boolean {
  return (
    (before.halted === null) !== (after.halted === null) ||
    placedVersion(before)?.version !== placedVersion(after)?.version
  );
}

/** Whether an execution is of the version and run that new executions of its job are of. */
export function isPlaced(execution: Pick<ExecutionRecord, "version" | "run">, job: JobRecord): boolean {
  if (job.halted === null) return !isOutdated(execution, job);
  return execution.version === placedVersion(job)?.version && !isEarlierRun(execution, job);
}

/** Whether an update or a restart of a service or daemon is in progress, which halts when what it starts fails. */
export function isUpdating({ record, outdated }: KnownJob): boolean {
  const { state, halted, version, readyVersion } = record;
  if (!isKept(record) || state !== "ACTIVE" || halted !== null) return false;
  return outdated.size > 0 || (readyVersion !== null && readyVersion !== version);
}

/** Whether a job is kept running. */
export function isKept({ spec: { type } }: Pick<JobRecord, "spec">): boolean {
  return type === "service" || type === "daemon";
}

/** Whether an execution is of an earlier run of its job. */
export function isEarlierRun({ run }: Pick<ExecutionRecord, "run">, job: Pick<JobRecord, "run">): boolean {
  return run < job.run;
}

/** Whether an execution can be used, as far as its node has told. */
export function isReady({ record, observation }: KnownExecution, { spec, fallback }: JobRecord): boolean {
  if (record.state !== "LIVE") return false;
  const { checked } = record.version === fallback?.version ? fallback.spec : spec;
  return observation?.observed === "READY" || (!checked && observation?.observed === "RUNNING");
}

/** Places of a service or daemon that are on their way: few of them may be at a time when others are moved. */
export function inTransit(job: KnownJob): number {
  return job.unready.size + job.empty.size + untriedIn(job);
}

/** How many places have not been looked at yet. */
export function untriedIn({ record, fresh }: KnownJob): number {
  return isPerNode(record) ? 0 : Math.max(0, record.count - fresh);
}

/** Whether the rules refuse a job that an older release accepted: what runs continues, and nothing more is placed. */
export function isRefused({ violations = [] }: JobRecord): boolean {
  return violations.length > 0;
}

/** Whether nothing more of a job is placed: the rules refuse it, or its update halted and no version became ready. */
export function isBarred(job: JobRecord): boolean {
  return isRefused(job) || placedVersion(job) === null;
}

/** Whether a job has one place a node. */
export function isPerNode({ spec }: JobRecord): boolean {
  return spec.type === "ops" || spec.type === "daemon";
}

/** Whether a job ends when all its places have. */
export function mayEnd({ spec }: JobRecord): boolean {
  return spec.type === "batch" || spec.type === "ops";
}

/** Whether any node could run an execution of a job if nothing else ran there. */
export function jobCouldFit(state: WorkState, job: KnownJob): boolean {
  const { gains } = state.pool;
  if (job.couldFit?.gains !== gains) job.couldFit = { gains, fits: couldFit(state.pool, job.request) };
  return job.couldFit.fits;
}

/** Whether a node has what a job's constraints ask for, whether it takes work now or not. */
export function nodeMatches(state: WorkState, job: KnownJob, nodeId: string): boolean {
  const of = state.pool.classOf(nodeId);
  if (of === undefined) return false;
  const named = job.request.spec.constraints.nodeId;
  if (named !== null && named !== nodeId) return false;
  const { executors } = of.facts;
  // What a node runs continues while it offers nothing, as when its keeper is away, and while its GPUs are unknown.
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
