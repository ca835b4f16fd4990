import type { NodeReport, NodeWork, NodeWorkQuery, SavedReports, SpecRow } from "@rollcall/store";

/** A node whose work changed. */
export interface ChangedWork {
  readonly nodeId: string;
  /** The generation of the last change. */
  readonly generation: bigint;
}

/** The store's methods for work. */
export interface WorkStore {
  /** The id of the store's history. */
  logId(): string;
  /** The work that nodes should run, see readNodeWork(). */
  readNodes(queries: readonly NodeWorkQuery[]): Promise<readonly NodeWork[]>;
  /**
   * Nodes whose work changed since the last call, in any order. A node can appear twice, and again with a generation
   * that is already known.
   */
  changedNodes(): Promise<readonly ChangedWork[]>;
  /** The specs with these digests; missing specs are left out. */
  readSpecs(digests: readonly Uint8Array[]): Promise<readonly SpecRow[]>;
  /** Save reports, see saveObservations(). */
  saveReports(reports: readonly NodeReport[]): Promise<SavedReports>;
  /** Which of these ended executions a node can forget, see readForgettable(). */
  forgettable(nodeId: string, ids: readonly string[]): Promise<readonly string[]>;
}
