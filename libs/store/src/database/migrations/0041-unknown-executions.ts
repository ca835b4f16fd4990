import { sql } from "kysely";
import type { Migration } from "kysely/migration";

/** Marks the reported executions that the store did not know, so that their number can be limited. */
export const unknownExecutions: Migration = {
  async up(db) {
    // Limit the wait for locks, because nodes write reports constantly: see migrateToLatest().
    await sql`set local lock_timeout = '2s'`.execute(db);
    await sql`alter table execution_observations add column unknown boolean not null default false`.execute(db);
    await sql`
      comment on column execution_observations.unknown is
        'Whether the store did not know the execution when it was first reported. Cleared when it is adopted, and an hour after its end. Written by health, cleared by the leading scheduler.'
    `.execute(db);
    await sql`
      create index execution_observations_unknown_idx on execution_observations (node_id) where unknown
    `.execute(db);
  },
};
