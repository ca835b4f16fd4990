import type { CommandSource, OwnerQuota, PlacedNode } from "@rollcall/domain";
import { autoRevertJob } from "@rollcall/operations";
import {
  type ChangePosition,
  type Changes,
  changePosition,
  commitWork,
  currentRevision,
  type DrainRow,
  type ExecutionRow,
  ensureAllocations,
  getExecutions,
  getJobs,
  getJobVersion,
  greatestExecutionId,
  type HomelessOrphan,
  type JobRow,
  type JobVersionRow,
  listDrains,
  noteSchedulerLeads,
  type ReservedStore,
  readComputeNodeIds,
  readExecutionsOfJob,
  readHomelessOrphans,
  readJobs,
  readLiveExecutions,
  readNewestEnded,
  readNodes,
  readObservedIds,
  readUnknownExecutions,
  readUnsettledIds,
  storeTimeMs,
  type UnknownExecution,
  type WorkCommit,
  type WorkCommitted,
} from "@rollcall/store";

/** The part of a list to read: the items after an id or a name. */
export interface PageQuery {
  readonly after: string;
  readonly limit: number;
}

/**
 * The store's methods that a leader uses. Each method is one transaction or one read; see the store's functions with
 * the same names. If commitWork() rejects, it is unknown whether the commit took place. A simulation passes its own
 * implementation.
 */
export interface LeaderStore {
  currentRevision(): Promise<bigint>;
  changePosition(): Promise<ChangePosition>;
  storeTimeMs(): Promise<number>;
  noteSchedulerLeads(): Promise<void>;
  commitWork(commit: WorkCommit): Promise<WorkCommitted>;
  readObservedIds(query: PageQuery & { readonly position: ChangePosition }): Promise<Changes<string>>;
  readUnsettledIds(query: PageQuery): Promise<readonly string[]>;
  readUnknownExecutions(
    query: PageQuery & { readonly position: ChangePosition | null },
  ): Promise<readonly UnknownExecution[]>;
  readHomelessOrphans(query: PageQuery): Promise<readonly HomelessOrphan[]>;
  greatestExecutionId(): Promise<string>;
  readLiveExecutions(query: PageQuery): Promise<readonly ExecutionRow[]>;
  readExecutionsOfJob(job: string): Promise<readonly ExecutionRow[]>;
  readNewestEnded(query: PageQuery): Promise<readonly ExecutionRow[]>;
  getExecutions(ids: readonly string[]): Promise<readonly ExecutionRow[]>;
  readJobs(query: PageQuery): Promise<readonly JobRow[]>;
  getJobs(names: readonly string[]): Promise<readonly JobRow[]>;
  getJobVersion(job: string, version: number): Promise<JobVersionRow | null>;
  /**
   * Revert a job whose update to this version has halted, if its policy says so. Does nothing if that no longer
   * applies. Returns why the earlier version cannot be submitted: the current rules or its owner's quota refuse it.
   */
  autoRevert(job: string, version: number, by: CommandSource): Promise<string | null>;
  readComputeNodeIds(query: PageQuery): Promise<readonly string[]>;
  ensureAllocations(nodeIds: readonly string[]): Promise<void>;
  readNodes(ids: readonly string[]): AsyncIterable<readonly PlacedNode[]>;
  listDrains(nodeIds: readonly string[]): Promise<readonly DrainRow[]>;
}

/**
 * The store of a leader, on Postgres.
 *
 * @param quota what the jobs of each owner can use.
 */
export function createPostgresRecord(store: ReservedStore, quota: OwnerQuota): LeaderStore {
  const { db } = store;
  return {
    currentRevision: () => currentRevision(db),
    changePosition: () => changePosition(db),
    storeTimeMs: () => storeTimeMs(db),
    noteSchedulerLeads: () => noteSchedulerLeads(store),
    commitWork: (commit) => commitWork(store, commit),
    readObservedIds: (query) => readObservedIds(db, query),
    readUnsettledIds: (query) => readUnsettledIds(db, query),
    readUnknownExecutions: (query) => readUnknownExecutions(db, query),
    readHomelessOrphans: (query) => readHomelessOrphans(db, query),
    greatestExecutionId: () => greatestExecutionId(db),
    readLiveExecutions: (query) => readLiveExecutions(db, query),
    readExecutionsOfJob: (job) => readExecutionsOfJob(db, job),
    readNewestEnded: (query) => readNewestEnded(db, query),
    getExecutions: (ids) => getExecutions(db, ids),
    readJobs: (query) => readJobs(db, query),
    getJobs: (names) => getJobs(db, names),
    getJobVersion: (job, version) => getJobVersion(db, job, version),
    autoRevert: (job, version, by) => autoRevertJob(store, { job, version, by, quota }),
    readComputeNodeIds: (query) => readComputeNodeIds(db, query),
    ensureAllocations: (nodeIds) => ensureAllocations(store, nodeIds),
    readNodes: (ids) => readNodes(db, ids),
    listDrains: (nodeIds) => listDrains(db, nodeIds),
  };
}
