import type { ExecutionState } from "../state/execution-state.ts";

/** The identity of an execution, as the node received it. */
export interface ExecutionIdentity {
  readonly id: string;
  readonly job: string;
  readonly nodeId: string;
  readonly index: number;
  readonly ports: Readonly<Record<string, number>>;
  readonly gpuUuids: readonly string[];
  /** SHA-256 of the spec in hexadecimal; empty if the execution was stopped before its spec was known. */
  readonly specDigest: string;
  /** The encoded ExecutionSpec in base64; empty if the spec was not known. */
  readonly spec: string;
}

/** An execution as the keeper stores it on disk. */
export interface Execution {
  readonly identity: ExecutionIdentity;
  /** The id of the store history that knows the execution. */
  readonly logId: string;
  /** The id of the boot that the monotonic times in `state` belong to. */
  readonly bootId: string;
  readonly state: ExecutionState;
  /** When the execution was forgotten, in wall time; null while it is reported. */
  readonly forgottenWallMs: number | null;
}

const VERSION = 1;

export function formatRecord(record: Execution): string {
  return `${JSON.stringify({ version: VERSION, ...record })}\n`;
}

/** Parse a record; null for another version. Only a keeper writes records, so the shape is not checked. */
export function parseRecord(text: string): Execution | null {
  try {
    const value: { readonly version?: unknown } & Execution = JSON.parse(text);
    const isRecord = value.version === VERSION && typeof value.identity?.id === "string" && value.state !== undefined;
    return isRecord ? value : null;
  } catch {
    return null;
  }
}

/** Whether a string is a valid execution id, and therefore a valid directory name. */
export function isExecutionId(text: string): boolean {
  return /^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/.test(text);
}
