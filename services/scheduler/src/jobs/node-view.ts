import type { ExecutionRecord, JobSpec } from "@rollcall/domain";

/** One reason for which nodes will not do. */
export interface NodeRefusal {
  readonly reason: string;
  readonly message: string;
  readonly nodes: number;
}

/** What a job would find. */
export interface JobOutlook {
  /** Nodes that were considered. */
  readonly nodes: number;
  /** Those of them that would do if nothing ran on them. */
  readonly matching: number;
  /** Where executions would go, in order. */
  readonly placed: readonly { readonly index: number; readonly nodeId: string; readonly executionId: string | null }[];
  /** Executions that would wait. */
  readonly waiting: number;
  /** The most frequent first. */
  readonly refusals: readonly NodeRefusal[];
}

/** The nodes that jobs are planned against. */
export interface NodeView {
  /** What would happen to a job; `present` are its executions that are not over. Nothing is changed. */
  outlook(spec: JobSpec, present: readonly ExecutionRecord[]): Promise<JobOutlook>;
}
