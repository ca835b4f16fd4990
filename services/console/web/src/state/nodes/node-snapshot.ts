import type { WatchNodesResponse } from "@rollcall/api/rollcall/registry/v1/registry_pb";
import { type NodeRow, toRow } from "./node-row.ts";

/** More nodes than this are not kept in a page: filters of the server are for those. */
const MOST_ROWS = 100_000;

/** One change of a fleet, for those who keep something about it. */
export interface RowChange {
  readonly before: NodeRow | undefined;
  readonly after: NodeRow | undefined;
}

/** Where a watch stands. */
export interface SnapshotProgress {
  /** Whether everything that there was has come. */
  readonly complete: boolean;
  /** Where to go on after a break; "" before the first message. */
  readonly resumeToken: string;
  /** Nodes that were left out since there are too many. */
  readonly leftOut: number;
}

/**
 * The nodes as a watch tells of them. While a second snapshot comes, as after a break that was too long, the rows of
 * the first stay; what the second did not name is removed when it is complete.
 */
export class NodeSnapshot {
  readonly rows = new Map<string, NodeRow>();
  #seen: Set<string> | null = new Set();
  #progress: SnapshotProgress = { complete: false, resumeToken: "", leftOut: 0 };

  get progress(): SnapshotProgress {
    return this.#progress;
  }

  /** Begin with a snapshot again: the resume token is worth nothing any more. */
  restart(): void {
    this.#seen = new Set();
    this.#progress = { ...this.#progress, resumeToken: "", leftOut: 0 };
  }

  /** Apply a message. Answers what changed, in order. */
  apply(message: WatchNodesResponse): readonly RowChange[] {
    const changes: RowChange[] = [];
    let { complete, leftOut } = this.#progress;
    for (const { change } of message.changes) {
      if (change.case === "upserted") {
        const before = this.rows.get(change.value.id);
        if (before === undefined && this.rows.size >= MOST_ROWS) {
          leftOut += 1;
          continue;
        }
        const after = toRow(change.value);
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
    // A token from within a snapshot begins with a snapshot again: only one after it is worth keeping.
    const resumeToken = this.#seen === null ? message.resumeToken : "";
    this.#progress = { complete, resumeToken, leftOut };
    return changes;
  }

  #remove(id: string, changes: RowChange[]): void {
    const before = this.rows.get(id);
    if (before === undefined) return;
    this.rows.delete(id);
    changes.push({ before, after: undefined });
  }

  #removeUnseen(seen: ReadonlySet<string>, changes: RowChange[]): void {
    for (const id of [...this.rows.keys()]) if (!seen.has(id)) this.#remove(id, changes);
  }
}
