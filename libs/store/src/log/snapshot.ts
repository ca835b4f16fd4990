import { NODE_CHANGES } from "@rollcall/domain";
import { sql } from "kysely";
import type { Db, LaneStore, Tx } from "../database/store.ts";

/** The record as it was at one revision, however long one looks at it. It holds a connection until it is closed. */
export interface Snapshot {
  readonly db: Db;
  /** It holds the changes of all events up to here, and of none above. */
  readonly revision: bigint;
  /** Events up to here had been forgotten. */
  readonly compactedRevision: bigint;
  /** Let go of the connection. Closing it again does nothing. */
  close(): Promise<void>;
}

/** Open a snapshot of the present moment, in one read-only REPEATABLE READ transaction. */
export async function openSnapshot(store: LaneStore): Promise<Snapshot> {
  const tx = await store.db
    .startTransaction()
    .setIsolationLevel("repeatable read")
    .setAccessMode("read only")
    .execute();
  let closing: Promise<void> | null = null;
  const close = () => {
    // There is nothing to lose: over a connection that is gone it fails, and the server ends the transaction by itself.
    closing ??= tx
      .rollback()
      .execute()
      .catch(() => {});
    return closing;
  };
  try {
    const { rows } = await sql<{ head: bigint; compacted: bigint }>`
      select
        (select coalesce(max(revision), 0) from events) as head,
        (select compacted_revision from cluster) as compacted`.execute(tx);
    const [row] = rows;
    if (row === undefined) throw new Error("the record has no head");
    return {
      db: tx as unknown as Tx,
      revision: row.head,
      compactedRevision: row.compacted,
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

/**
 * The nodes that were changed by events above a revision, by id, each with the last revision of one; nodes that are
 * gone included.
 */
export async function changedNodeIds(
  db: Db,
  after: bigint,
): Promise<readonly { readonly id: string; readonly revision: bigint }[]> {
  const { rows } = await sql<{ id: string; revision: bigint }>`
    select subject as id, max(revision) as revision
    from events
    where revision > ${after} and type like ${`${NODE_CHANGES.prefix}%`} and type <> ${NODE_CHANGES.except}
    group by subject
    order by subject`.execute(db);
  return rows;
}
