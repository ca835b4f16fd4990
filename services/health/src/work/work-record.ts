import type { NodeReport, NodeWork, NodeWorkQuery, SavedReports, SpecRecord } from "@rollcall/store";

/** A node whose work changed. */
export interface ChangedWork {
  readonly nodeId: string;
  /** Of its last change. */
  readonly generation: bigint;
}

/** What health needs of the record of work. */
export interface WorkRecord {
  /** The history of the log. */
  logId(): string;
  /** What nodes should run, see readNodeWork(). */
  readNodes(queries: readonly NodeWorkQuery[]): Promise<readonly NodeWork[]>;
  /**
   * Nodes whose work changed since the last call, in any order. A node may come twice, and again with a generation that
   * is already known.
   */
  changedNodes(): Promise<readonly ChangedWork[]>;
  /** Specs by their digests; those that are not there are left out. */
  readSpecs(digests: readonly Uint8Array[]): Promise<readonly SpecRecord[]>;
  /** Save reports, see saveObservations(). */
  saveReports(reports: readonly NodeReport[]): Promise<SavedReports>;
  /** Those of a node's executions whose end has been recorded. */
  forgettable(nodeId: string, ids: readonly string[]): Promise<readonly string[]>;
}
