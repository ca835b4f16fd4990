import { sql } from "kysely";
import type { Db, LaneStore } from "../database/store.ts";

export interface CompactOptions {
  /** Maximum number of events that one transaction deletes. Default 5000. */
  readonly batchSize?: number;
  /** An abort stops the compaction between two batches. */
  readonly signal?: AbortSignal;
}

const DEFAULT_BATCH_SIZE = 5_000;

/**
 * Delete the events at the start of the log that are older than `olderThanMs`, in bounded batches. Returns how many.
 *
 * Stops before the first newer event, even if later events have older times. Always keeps the last event, which marks
 * the log's head. Several processes can call this concurrently.
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
 * Read the last deleted revision; 0 when there is none. Call this after reading the log, to find out whether events
 * were missing from it.
 */
export async function compactedRevision(db: Db): Promise<bigint> {
  const row = await db.selectFrom("cluster").select("compacted_revision").executeTakeFirst();
  return row?.compacted_revision ?? 0n;
}

/** A single statement deletes events and records the last deleted revision, so that a reader sees both or neither. */
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
