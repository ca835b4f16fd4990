import type { NodeReport, NodeWork, NodeWorkQuery, SavedReports, SpecRecord } from "@rollcall/store";

/** What health needs of the record of work. */
export interface WorkRecord {
  /** The history of the log. */
  logId(): string;
  /** What nodes should run, see readNodeWork(). */
  readNodes(queries: readonly NodeWorkQuery[]): Promise<readonly NodeWork[]>;
  /** Nodes of which the work has changed since the last call, in any order; a node may come twice. */
  changedNodes(): Promise<readonly string[]>;
  /** Specs by their digests; those that are not there are left out. */
  readSpecs(digests: readonly Uint8Array[]): Promise<readonly SpecRecord[]>;
  /** Save reports, see saveObservations(). */
  saveReports(reports: readonly NodeReport[]): Promise<SavedReports>;
  /** Those of a node's executions whose end has been recorded. */
  forgettable(nodeId: string, ids: readonly string[]): Promise<readonly string[]>;
}
