import { sql } from "kysely";
import type { Db } from "../database/store.ts";
import type { EventFeed } from "../log/feed.ts";

/**
 * How far a reader of changed rows is: a transaction id, as a decimal. Rows name the transaction that wrote them last;
 * whatever is read from here on has been written by a transaction that had not ended when this was taken, or by a later
 * one. So a row may come twice, and none is missed, in whatever order transactions commit and without a lock. Readers
 * compare by generation or by (epoch, report).
 */
export type ChangePosition = string;

/** A piece of what changed. */
export interface Changes<T> {
  readonly items: readonly T[];
  /** Where the next read begins. */
  readonly position: ChangePosition;
}

/** Notified when work has changed; the payload says which side of it. */
export const WORK_CHANNEL = "rollcall_work";

/** What nodes should run, or what they say of it. */
export type WorkSide = "WANTED" | "OBSERVED";

/** The present position: take it before reading whole, and follow from it. */
export async function changePosition(db: Db): Promise<ChangePosition> {
  const { rows } = await sql<{ position: string }>`
    select pg_snapshot_xmin(pg_current_snapshot())::text as position`.execute(db);
  const [row] = rows;
  if (row === undefined) throw new Error("the record tells no position");
  return row.position;
}

/**
 * The condition of a row that was written since a position. One of a record that was restored from a dump may name a
 * transaction that is still to come: it is no change.
 */
export function changedSince(table: string, position: ChangePosition) {
  const column = sql.ref(`${table}.changed`);
  return sql<boolean>`(
    ${column} >= ${position}::xid8 and ${column} < pg_snapshot_xmax(pg_current_snapshot())
  )`;
}

/**
 * Tells the parts of a process when work has changed, over the connection of its feed. It says that there is something
 * to read and no more, and it may miss a change: followers poll as well. To be created before the feed starts.
 */
export class WorkSignals {
  readonly #followers = new Map<() => void, WorkSide | null>();

  constructor(feed: Pick<EventFeed, "listen">) {
    feed.listen(WORK_CHANNEL, (payload) => {
      for (const [wake, side] of this.#followers) if (payload === null || side === null || side === payload) wake();
    });
  }

  /** Call whenever a side has changed, or either when it is null. Returns an unsubscribe function. */
  follow(side: WorkSide | null, wake: () => void): () => void {
    // One function may follow twice.
    const follower = () => wake();
    this.#followers.set(follower, side);
    return () => this.#followers.delete(follower);
  }
}
