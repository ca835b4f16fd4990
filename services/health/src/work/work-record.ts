import type { Observed, Observation } from "@rollcall/domain";
import type { WorkReference } from "./work-frames.ts";

/** What a node should run, or what of it has changed. */
export interface NodeWorkList {
  readonly nodeId: string;
  /** The generation up to which the list goes. */
  readonly generation: bigint;
  readonly references: readonly WorkReference[];
}

/** Asks for the changes after a generation; null for the whole list. */
export interface NodeWorkQuestion {
  readonly nodeId: string;
  readonly after: bigint | null;
}

/** What a node said about one execution. */
export interface ReportedExecution extends Omit<Observation, "epoch" | "report"> {
  readonly id: string;
  readonly observed: Observed;
  /** Name of its job, as the node knows it. */
  readonly job: string;
  readonly specDigest: Uint8Array;
}

/** A report of a node, as it is saved. */
export interface NodeReport {
  readonly nodeId: string;
  /** The session's epoch: a report of an earlier session has no effect. */
  readonly epoch: number;
  readonly number: number;
  readonly executions: readonly ReportedExecution[];
  /**
   * Of a whole report: all that the node has, and the generation up to which the node knew what it should run. What it
   * should run by then and does not have is missing. Null for a report of changes.
   */
  readonly whole: { readonly ids: readonly string[]; readonly generation: bigint } | null;
}

/** What health needs of the record of work. Each call is one statement or one transaction. */
export interface WorkRecord {
  /** The history of the log. */
  logId(): string;
  /** What nodes should run; the answers are in any order, and a node without work may be left out. */
  readNodes(questions: readonly NodeWorkQuestion[]): Promise<readonly NodeWorkList[]>;
  /** Nodes whose list has changed since the last call; all that this process holds at its first call. */
  changedNodes(): Promise<readonly string[]>;
  /** Specs by their digests; those that are not there are left out. */
  readSpecs(digests: readonly Uint8Array[]): Promise<readonly { digest: Uint8Array; spec: Uint8Array }[]>;
  /** Save reports. Returns those nodes whose session is still the one that reported. */
  saveReports(reports: readonly NodeReport[]): Promise<ReadonlySet<string>>;
}
