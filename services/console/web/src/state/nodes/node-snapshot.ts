import type { WatchNodesResponse } from "@rollcall/api/rollcall/registry/v1/registry_pb";
import { type NodeRow, toRow } from "./node-row.ts";

/** Maximum number of machines that a page stores. The server lists larger fleets. */
const MOST_ROWS = 50_000;

/** The maximum number of machines to keep; the browser's storage can lower it. */
export function mostRows(told: string | null): number {
  const most = Number(told ?? "");
  return Number.isSafeInteger(most) && most > 0 ? Math.min(most, MOST_ROWS) : MOST_ROWS;
}

/** One change to the fleet. */
export interface RowChange {
  readonly before: NodeRow | undefined;
  readonly after: NodeRow | undefined;
}

/** The progress of a watch. */
export interface SnapshotProgress {
  /** Whether the snapshot is complete. */
  readonly complete: boolean;
  /** Where to resume after a disconnect; "" before the first message. */
  readonly resumeToken: string;
  /** Number of machines that were dropped because of the limit. */
  readonly leftOut: number;
}

/**
 * The nodes of a watch. While a new snapshot arrives, such as after a long disconnect, the rows of the previous
 * one stay. When it is complete, rows that it lacks are removed.
 */
export class NodeSnapshot {
  readonly rows = new Map<string, NodeRow>();
  #seen: Set<string> | null = new Set();
  #progress: SnapshotProgress = { complete: false, resumeToken: "", leftOut: 0 };
  #machines = 0;
  readonly #most: number;

  /** @param most Maximum number of machines; the few processes of the control plane do not count. */
  constructor(most = MOST_ROWS) {
    this.#most = most;
  }

  get progress(): SnapshotProgress {
    return this.#progress;
  }

  /** Start with a new snapshot: the resume token is no longer valid. */
  restart(): void {
    this.#seen = new Set();
    this.#progress = { ...this.#progress, resumeToken: "", leftOut: 0 };
  }

  /** Remove all nodes. Returns the changes. */
  clear(): readonly RowChange[] {
    const changes: RowChange[] = [...this.rows.values()].map((before) => ({ before, after: undefined }));
    this.rows.clear();
    this.#machines = 0;
    this.restart();
    return changes;
  }

  /** Apply a message, except nodes that `belongs` rejects. Returns the changes in order. */
  apply(
    message: WatchNodesResponse,
    belongs: (row: NodeRow, isKnown: boolean) => boolean = () => true,
  ): readonly RowChange[] {
    const changes: RowChange[] = [];
    let { complete, leftOut } = this.#progress;
    for (const { change } of message.changes) {
      if (change.case === "upserted") {
        const before = this.rows.get(change.value.id);
        const after = toRow(change.value);
        if (!belongs(after, before !== undefined)) {
          this.#remove(after.id, changes);
          continue;
        }
        if (before === undefined && isMachine(after)) {
          if (this.#machines >= this.#most) {
            leftOut += 1;
            continue;
          }
          this.#machines += 1;
        }
        this.rows.set(after.id, after);
        this.#seen?.add(after.id);
        changes.push({ before, after });
      } else if (change.case === "removedId") {
        this.#remove(change.value, changes);
      }
    }
    if (message.snapshotComplete) {
      complete = true;
      if (this.#seen !== null && this.#progress.resumeToken === "") this.#removeUnseen(this.#seen, changes);
      this.#seen = null;
    }
    // Keep only tokens that follow a complete snapshot, because a token from within a snapshot would start
    // another one.
    const resumeToken = this.#seen === null ? message.resumeToken : "";
    this.#progress = { complete, resumeToken, leftOut };
    return changes;
  }

  #remove(id: string, changes: RowChange[]): void {
    const before = this.rows.get(id);
    if (before === undefined) return;
    this.rows.delete(id);
    if (isMachine(before)) this.#machines -= 1;
    changes.push({ before, after: undefined });
  }

  #removeUnseen(seen: ReadonlySet<string>, changes: RowChange[]): void {
    for (const id of [...this.rows.keys()]) if (!seen.has(id)) this.#remove(id, changes);
  }
}

function isMachine({ type }: NodeRow): boolean {
  return type === "compute";
}
