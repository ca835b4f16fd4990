import { sql } from "kysely";
import type { Db, LaneStore } from "../database/store.ts";

/** How to compact. */
export interface CompactOptions {
  /** Events that one transaction deletes at most; 5000. */
  readonly batchSize?: number;
  /** Ends it between two batches. */
  readonly signal?: AbortSignal;
}

const DEFAULT_BATCH_SIZE = 5_000;

/**
 * Forget the events at the beginning of the log that are older than `olderThanMs`, in bounded batches; how many went.
 * It ends before the first event that is not, whatever the times of later ones, and always keeps the newest event,
 * which tells where the log is. Any number of processes may do so at once.
 */
export async function compactEvents(
  store: LaneStore,
  olderThanMs: number,
  options: CompactOptions = {},
): Promise<number> {
  const { batchSize = DEFAULT_BATCH_SIZE, signal } = options;
  let total = 0;
  for (;;) {
    signal?.throwIfAborted();
    const deleted = await store.transaction((tx) => compactBatch(tx, olderThanMs, batchSize));
    total += deleted;
    if (deleted < batchSize) return total;
  }
}

/**
 * Events up to here have been forgotten; 0 when none has. Asked after a read of the log, it tells whether that read can
 * have missed some.
 */
export async function compactedRevision(db: Db): Promise<bigint> {
  const row = await db.selectFrom("cluster").select("compacted_revision").executeTakeFirst();
  return row?.compacted_revision ?? 0n;
}

/** One statement: a reader sees the events and the mark below them, or neither of the two changed. */
async function compactBatch(db: Db, olderThanMs: number, batchSize: number): Promise<number> {
  const { rows } = await sql<{ deleted: number }>`
    with oldest as (
      select revision, at from events order by revision limit ${batchSize}
    ),
    fresh as (
      select min(revision) as revision
      from oldest
      where at >= now() - ${olderThanMs} * interval '1 millisecond'
    ),
    doomed as (
      select max(oldest.revision) as revision
      from oldest, fresh
      where (fresh.revision is null or oldest.revision < fresh.revision)
        and oldest.revision < (select max(revision) from events)
    ),
    mark as (
      update cluster
      set compacted_revision = greatest(compacted_revision, doomed.revision)
      from doomed
      where doomed.revision is not null
      returning compacted_revision
    ),
    gone as (
      delete from events
      using doomed
      where events.revision <= doomed.revision and exists (select from mark)
      returning events.revision
    )
    select count(*)::integer as deleted from gone`.execute(db);
  return rows[0]?.deleted ?? 0;
}
