import type { ExecutionState } from "../execution/execution-state.ts";

/** Which execution it is, as its node was told. */
export interface ExecutionIdentity {
  readonly id: string;
  readonly job: string;
  readonly nodeId: string;
  readonly index: number;
  readonly ports: Readonly<Record<string, number>>;
  readonly gpuUuids: readonly string[];
  /** SHA-256 of the spec, in hexadecimal digits; empty for one that was stopped before its spec was known. */
  readonly specDigest: string;
  /** The encoded ExecutionSpec in base64; empty where it was not known. */
  readonly spec: string;
}

/** What the keeper's disk has of an execution. */
export interface ExecutionRecord {
  readonly identity: ExecutionIdentity;
  /** The history of the control plane's record that knows it. */
  readonly logId: string;
  /** The boot of the machine in which the state's monotonic times were taken. */
  readonly bootId: string;
  readonly state: ExecutionState;
  /** When it was forgotten, by the wall clock; null while it is reported. */
  readonly forgottenWallMs: number | null;
}

const VERSION = 1;

export function formatRecord(record: ExecutionRecord): string {
  return `${JSON.stringify({ version: VERSION, ...record })}\n`;
}

/** Read a record; null for one of another version. Only a keeper writes them, so the shape is not checked. */
export function parseRecord(text: string): ExecutionRecord | null {
  try {
    const value: { readonly version?: unknown } & ExecutionRecord = JSON.parse(text);
    const isRecord = value.version === VERSION && typeof value.identity?.id === "string" && value.state !== undefined;
    return isRecord ? value : null;
  } catch {
    return null;
  }
}

/** Whether a text can be the id of an execution, and so the name of its directory. */
export function isExecutionId(text: string): boolean {
  return /^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/.test(text);
}
