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

/**
 * Pauses between attempts to use the store. They are shorter than the default, which grows to half a minute, because
 * work must resume soon after the store is back.
 */
export const STORE_RETRY: RetryPauses = { baseMs: 100, maxMs: 2_000 };

/** The options that the loops of a replica share. */
export type SharedLoop = Pick<LoopOptions, "clock" | "retry">;

/** The outcome of a Hello in the store. */
export type StoredOpening = Exclude<SessionOpening, { outcome: "OPENED" }> | SuccessfulOpening;

/** A session that was opened. */
export type SuccessfulOpening = Extract<SessionOpening, { outcome: "OPENED" }> & {
  /**
   * Displacement events up to this revision concern an earlier session of this replica. An opening waits for the lock
   * on the node's row, so another opening can be committed between this opening's read of the membership and its
   * commit.
   */
  readonly openedRevision: bigint;
};

/**
 * The store's methods for admitting agents, writing observations and adopting nodes. Each call is one transaction; a
 * transaction may have been committed although the call rejects. The object is bound to one replica's instance.
 */
export interface HealthStore {
  clusterId(): string;
  /** The revision of the last event. */
  currentRevision(): Promise<bigint>;
  /** Resolve once all events up to a revision have been observed; reject when this takes too long. */
  caughtUpTo(revision: bigint): Promise<void>;
  /** The keys of nodes, keyed by node id; missing nodes are absent. */
  keysOf(nodeIds: readonly string[]): Promise<ReadonlyMap<string, NodeKeys>>;
  /** The labels of nodes, keyed by node id. */
  labelsOf(nodeIds: readonly string[]): Promise<ReadonlyMap<string, LabelsOfNode>>;
  /** The given nodes that do not exist because they were garbage-collected after a long absence. */
  collectedAmong(nodeIds: readonly string[]): Promise<ReadonlySet<string>>;
  /** Take the next epoch for each of these Hellos. Returns one opening for each Hello, in the order of the Hellos. */
  openSessions(hellos: readonly Omit<SessionHello, "replicaId">[]): Promise<readonly StoredOpening[]>;
  /** Write observations made under epochs that are still current. Returns the nodes that this replica still owns. */
  writeTransitions(transitions: readonly Transition[]): Promise<ReadonlySet<string>>;
  /** Adopt up to `limit` nodes of replicas without a lease. Returns none if this replica has no lease. */
  adoptOrphans(limit: number): Promise<readonly AdoptedNode[]>;
  /** The nodes among these ids that this replica owns; with null, all nodes that it owns. */
  held(nodeIds: readonly string[] | null): Promise<readonly OwnedSession[]>;
}
