import { writeFile } from "node:fs/promises";

/** The operations of a history. Each one is a call about one node. */
export type OperationName =
  | "read"
  | "register"
  | "approve"
  | "reject"
  | "cordon"
  | "uncordon"
  | "label"
  | "ban"
  | "unban"
  | "delete";

/** The part of a node that the checker's model knows. */
export interface NodeView {
  readonly membership: string;
  readonly banned: boolean;
  readonly cordoned: boolean;
  /** The value of DRILL_LABEL; empty without it. */
  readonly label: string;
}

/** The key of the label that the operations set. */
export const DRILL_LABEL = "drill";

/** An operation of a history: a line of the checker's input. */
export interface RecordedOperation {
  readonly node: string;
  readonly client: number;
  readonly operation: OperationName;
  /** The label's value to set. Absent for other operations. */
  readonly value?: string;
  readonly callUs: number;
  /** Null if the outcome is unknown: the operation took effect at any time after the call, or never. */
  readonly returnUs: number | null;
  /** The reason of the refusal. */
  readonly refusal?: string;
  /** The node in the response. Absent if the response has none. */
  readonly seen?: NodeView;
}

/** The operations of all clients. All times are from the monotonic clock of this process. */
export class History {
  readonly operations: RecordedOperation[] = [];

  nowUs(): number {
    return Math.round(performance.now() * 1_000);
  }

  record(operation: RecordedOperation): void {
    this.operations.push(operation);
  }

  /** The number of operations whose outcome is unknown. */
  get open(): number {
    return this.operations.filter(({ returnUs }) => returnUs === null).length;
  }

  /** Write the history as JSON lines. */
  async save(file: string): Promise<void> {
    await writeFile(file, toLines(this.operations));
  }
}

/** The operations as the checker reads them: one JSON object per line. */
export function toLines(operations: readonly RecordedOperation[]): string {
  return operations.map((operation) => `${JSON.stringify(operation)}\n`).join("");
}
