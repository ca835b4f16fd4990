import { sql } from "kysely";
import type { Db } from "../database/store.ts";
import type { EventFeed } from "../log/feed.ts";

/**
 * The position of a reader of changed rows: a transaction id, as a decimal. Each row stores the transaction that wrote
 * it last. A later change is written either by a transaction that had not ended when the position was taken, or by a
 * later transaction. So a reader misses no row, in any commit order and without a lock, but can read a row twice.
 * Readers detect repeated rows by generation or by (epoch, report).
 */
export type ChangePosition = string;

/** One page of changes. */
export interface Changes<T> {
  readonly items: readonly T[];
  /** The position at which the next read starts. */
  readonly position: ChangePosition;
}

/** The channel of notifications about changed work. The payload is the WorkSide that changed. */
export const WORK_CHANNEL = "rollcall_work";

/** What changed: the work that nodes should run (WANTED), or nodes' reports about it (OBSERVED). */
export type WorkSide = "WANTED" | "OBSERVED";

/** Read the current position. Take it before a full read, and then follow changes from it. */
export async function changePosition(db: Db): Promise<ChangePosition> {
  const { rows } = await sql<{ position: string }>`
    select pg_snapshot_xmin(pg_current_snapshot())::text as position`.execute(db);
  const [row] = rows;
  if (row === undefined) throw new Error("the database returned no position");
  return row.position;
}

/**
 * The condition for rows that were written since a position. After a restore from a dump, a row can name a future
 * transaction. That row does not count as changed.
 */
export function changedSince(table: string, position: ChangePosition) {
  const column = sql.ref(`${table}.changed`);
  return sql<boolean>`(
    ${column} >= ${position}::xid8 and ${column} < pg_snapshot_xmax(pg_current_snapshot())
  )`;
}

/**
 * Notifies the parts of a process when work has changed, over the connection of the process's feed. A notification only
 * says that there is something to read, and can be missed: followers must poll as well. Create this before the feed
 * starts.
 */
export class WorkSignals {
  readonly #followers = new Map<() => void, WorkSide | null>();

  constructor(feed: Pick<EventFeed, "listen">) {
    feed.listen(WORK_CHANNEL, (payload) => {
      for (const [wake, side] of this.#followers) if (payload === null || side === null || side === payload) wake();
    });
  }

  /**
   * Call `wake` whenever this side has changed, or with null, whenever either side has changed. Returns an unsubscribe
   * function.
   */
  follow(side: WorkSide | null, wake: () => void): () => void {
    // Wrap the function, so that the same function can follow more than once.
    const follower = () => wake();
    this.#followers.set(follower, side);
    return () => this.#followers.delete(follower);
  }
}
