import { sql } from "kysely";
import type { Db } from "../database/store.ts";

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
