import type { Executions, SpecFrame } from "@rollcall/api/rollcall/health/v1/health_pb";
import type { ExecutionObservation } from "@rollcall/api/rollcall/work/v1/work_pb";
import type { OutputSource } from "./send-output.ts";

/** What has changed on the machine. */
export interface WorkChange {
  readonly ids: readonly string[];
  /** Digests of all specs that are missing, in hexadecimal digits. */
  readonly wantedSpecs: readonly string[];
}

/** What a session knows of the machine's executions, and whom it tells what its server says of them. */
export interface WorkFeed {
  /** Whether the machine's executions are known. */
  readonly isKnown: boolean;
  /** Whether an execution has not ended. */
  readonly isRunning: boolean;
  /** What is seen of these executions, as far as the machine has them; of all for null. */
  observations(ids: readonly string[] | null): readonly ExecutionObservation[];
  /** See executionsDigest(). */
  digest(): bigint;
  /** Be told of changes, never before this returns. Returns the function that ends this. */
  subscribe(listener: (change: WorkChange) => void): () => void;
  /** A session was welcomed. */
  opened(): void;
  executions(frame: Executions): void;
  spec(frame: SpecFrame): void;
  /** The record has what was reported of these. */
  reported(ids: readonly string[]): void;
  /** The node was rejected, banned or deleted by this history of the record. */
  castOut(logId: string): void;
  /** The control plane was heard. */
  seen(): void;
  /** What executions wrote. */
  readonly output: OutputSource;
}
