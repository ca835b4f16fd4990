import type { LoopOptions, RetryPauses } from "@rollcall/process";
import type {
  AdoptedNode,
  LabelsOfNode,
  NodeKeys,
  OwnedSession,
  SessionHello,
  SessionOpening,
  Transition,
} from "@rollcall/store";

/** Work with the record must go on as soon as the record is back: the pauses of a task would grow to half a minute. */
export const RECORD_RETRY: RetryPauses = { baseMs: 100, maxMs: 2_000 };

/** What the loops of a replica share. */
export type SharedLoop = Pick<LoopOptions, "clock" | "retry">;

/** What a hello led to, as a replica learns it. */
export type RecordedOpening = Exclude<SessionOpening, { outcome: "OPENED" }> | SuccessfulOpening;

/** A session that was opened. */
export type SuccessfulOpening = Extract<SessionOpening, { outcome: "OPENED" }> & {
  /**
   * Events up to here by which this replica loses a session are about an earlier one: the opening waits for the node's
   * row, so that another opening may have been committed after the membership was read and before this one.
   */
  readonly openedRevision: bigint;
};

/**
 * What a replica needs of the record to admit agents, write what it observes, and adopt nodes. Each call is one
 * transaction; a rejection does not tell whether it was committed. The record knows the replica's instance.
 */
export interface HealthRecord {
  clusterId(): string;
  /** The revision of the last event. */
  currentRevision(): Promise<bigint>;
  /** Resolve once all events up to a revision have been observed; reject when that takes too long. */
  caughtUpTo(revision: bigint): Promise<void>;
  /** The keys of nodes, by node id; nodes that are not there have none. */
  keysOf(nodeIds: readonly string[]): Promise<ReadonlyMap<string, NodeKeys>>;
  /** The labels of nodes, by node id. */
  labelsOf(nodeIds: readonly string[]): Promise<ReadonlyMap<string, LabelsOfNode>>;
  /** Of nodes that do not exist, those that were collected because they were away for too long. */
  collectedAmong(nodeIds: readonly string[]): Promise<ReadonlySet<string>>;
  /** Take the next epoch for each of these hellos. One opening for each, in their order. */
  openSessions(hellos: readonly Omit<SessionHello, "replicaId">[]): Promise<readonly RecordedOpening[]>;
  /**
   * Write what was observed under epochs that are still current. Returns the nodes that still belong to the replica.
   */
  writeTransitions(transitions: readonly Transition[]): Promise<ReadonlySet<string>>;
  /** Adopt up to `limit` nodes of replicas without a lease. None for a replica without a lease of its own. */
  adoptOrphans(limit: number): Promise<readonly AdoptedNode[]>;
  /** The nodes whose session belongs to the replica, of these ids; null: all of them. */
  held(nodeIds: readonly string[] | null): Promise<readonly OwnedSession[]>;
}
