import { NODE_CHANGES } from "@rollcall/domain";
import { sql } from "kysely";
import type { Db, LaneStore, Tx } from "../database/store.ts";

/** The state of the store at one revision. It holds a connection until it is closed. */
export interface Snapshot {
  readonly db: Db;
  /** The snapshot contains the changes of all events up to this revision, and of no later ones. */
  readonly revision: bigint;
  /** The last revision whose event had already been deleted from the log. */
  readonly compactedRevision: bigint;
  /** Release the connection. Can be called more than once. */
  close(): Promise<void>;
}

/** Open a snapshot of the current state, in one read-only REPEATABLE READ transaction. */
export async function openSnapshot(store: LaneStore): Promise<Snapshot> {
  const tx = await store.db
    .startTransaction()
    .setIsolationLevel("repeatable read")
    .setAccessMode("read only")
    .execute();
  let closing: Promise<void> | null = null;
  const close = () => {
    // Ignore errors, because nothing was written. If the connection is lost, the rollback fails, but the server
    // ends the transaction automatically.
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
    if (row === undefined) throw new Error("the event log has no head");
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
 * List the nodes that events above a revision changed, including deleted nodes, sorted by id. Each node comes
 * with the last revision that changed it.
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
