import type { WatchNodesResponse } from "@rollcall/api/rollcall/registry/v1/registry_pb";
import { type NodeRow, toRow } from "./node-row.ts";

/** More machines than this are not kept in a page: lists of the server are for those. */
const MOST_ROWS = 50_000;

/** How many machines a page keeps: fewer where its browser was told so. */
export function mostRows(told: string | null): number {
  const most = Number(told ?? "");
  return Number.isSafeInteger(most) && most > 0 ? Math.min(most, MOST_ROWS) : MOST_ROWS;
}

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
  /** Machines that were left out since there are too many. */
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
  #machines = 0;
  readonly #most: number;

  /** @param most Machines that are kept; the few processes of the control plane are kept besides. */
  constructor(most = MOST_ROWS) {
    this.#most = most;
  }

  get progress(): SnapshotProgress {
    return this.#progress;
  }

  /** Begin with a snapshot again: the resume token is worth nothing any more. */
  restart(): void {
    this.#seen = new Set();
    this.#progress = { ...this.#progress, resumeToken: "", leftOut: 0 };
  }

  /** Let all nodes go. Answers what changed by that. */
  clear(): readonly RowChange[] {
    const changes: RowChange[] = [...this.rows.values()].map((before) => ({ before, after: undefined }));
    this.rows.clear();
    this.#machines = 0;
    this.restart();
    return changes;
  }

  /** Apply a message, of which nodes that `belongs` denies are left out. Answers what changed, in order. */
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
    // A token from within a snapshot begins with a snapshot again: only one after it is worth keeping.
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
