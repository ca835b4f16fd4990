import type { CommandSource, OwnerQuota, PlacedNode } from "@rollcall/domain";
import { autoRevertJob } from "@rollcall/operations";
import {
  type ChangePosition,
  type Changes,
  changePosition,
  commitWork,
  currentRevision,
  ensureAllocations,
  freeIndex,
  getExecutions,
  getJobs,
  getJobVersion,
  greatestExecutionId,
  type HomelessOrphan,
  indexToAdopt,
  type JobVersionRecord,
  listDrains,
  noteSchedulerLeads,
  type PlacesOfJob,
  type ReservedStore,
  readComputeNodeIds,
  readHomelessOrphans,
  readJobs,
  readLiveExecutions,
  readNewestEnded,
  readNodes,
  readObservedIds,
  readUnknownExecutions,
  readUnsettledIds,
  recordTimeMs,
  type StoredDrain,
  type StoredExecution,
  type StoredJob,
  type UnknownExecution,
  type WorkCommit,
  type WorkCommitted,
} from "@rollcall/store";

/** Which part of a list to read: what comes after an id or a name. */
export interface PageQuery {
  readonly after: string;
  readonly limit: number;
}

/**
 * What a leader needs of the record, one transaction or one read each, as the functions of the store of the same names
 * say. A rejection of commitWork() does not tell whether it was committed. A simulation passes its own.
 */
export interface LeaderRecord {
  currentRevision(): Promise<bigint>;
  changePosition(): Promise<ChangePosition>;
  recordTimeMs(): Promise<number>;
  noteSchedulerLeads(): Promise<void>;
  commitWork(commit: WorkCommit): Promise<WorkCommitted>;
  readObservedIds(query: PageQuery & { readonly position: ChangePosition }): Promise<Changes<string>>;
  readUnsettledIds(query: PageQuery): Promise<readonly string[]>;
  readUnknownExecutions(
    query: PageQuery & { readonly position: ChangePosition | null },
  ): Promise<readonly UnknownExecution[]>;
  readHomelessOrphans(query: PageQuery): Promise<readonly HomelessOrphan[]>;
  greatestExecutionId(): Promise<string>;
  readLiveExecutions(query: PageQuery): Promise<readonly StoredExecution[]>;
  readNewestEnded(query: PageQuery): Promise<readonly StoredExecution[]>;
  getExecutions(ids: readonly string[]): Promise<readonly StoredExecution[]>;
  readJobs(query: PageQuery): Promise<readonly StoredJob[]>;
  getJobs(names: readonly string[]): Promise<readonly StoredJob[]>;
  getJobVersion(job: string, version: number): Promise<JobVersionRecord | null>;
  /**
   * Revert a job whose update to a version halted, as its policy says. Does nothing if that is no longer the case.
   * Returns why the earlier version cannot be submitted: today's rules refuse it, or its owner's quota does.
   */
  autoRevert(job: string, version: number, by: CommandSource): Promise<string | null>;
  readComputeNodeIds(query: PageQuery): Promise<readonly string[]>;
  ensureAllocations(nodeIds: readonly string[]): Promise<void>;
  readNodes(ids: readonly string[]): AsyncIterable<readonly PlacedNode[]>;
  listDrains(nodeIds: readonly string[]): Promise<readonly StoredDrain[]>;
  freeIndex(job: string): Promise<number>;
  indexToAdopt(places: PlacesOfJob): Promise<number>;
}

/**
 * The record of a leader, on Postgres.
 *
 * @param quota what the jobs of each owner can use.
 */
export function createPostgresRecord(store: ReservedStore, quota: OwnerQuota): LeaderRecord {
  const { db } = store;
  return {
    currentRevision: () => currentRevision(db),
    changePosition: () => changePosition(db),
    recordTimeMs: () => recordTimeMs(db),
    noteSchedulerLeads: () => noteSchedulerLeads(store),
    commitWork: (commit) => commitWork(store, commit),
    readObservedIds: (query) => readObservedIds(db, query),
    readUnsettledIds: (query) => readUnsettledIds(db, query),
    readUnknownExecutions: (query) => readUnknownExecutions(db, query),
    readHomelessOrphans: (query) => readHomelessOrphans(db, query),
    greatestExecutionId: () => greatestExecutionId(db),
    readLiveExecutions: (query) => readLiveExecutions(db, query),
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
    freeIndex: (job) => freeIndex(db, job),
    indexToAdopt: (places) => indexToAdopt(db, places),
  };
}
