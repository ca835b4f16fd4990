import { sql } from "kysely";
import type { Migration } from "kysely/migration";

/** Which observations are of executions that the store did not know: their number is bounded. */
export const unknownExecutions: Migration = {
  async up(db) {
    // Reports are written all the time: see migrateToLatest().
    await sql`set local lock_timeout = '2s'`.execute(db);
    await sql`alter table execution_observations add column unknown boolean not null default false`.execute(db);
    await sql`
      comment on column execution_observations.unknown is
        'Whether the store did not know the execution when it was first reported. Set back when it is adopted, and an hour after its end. Written by health, set back by the leading scheduler.'
    `.execute(db);
    await sql`
      create index execution_observations_unknown_idx on execution_observations (node_id) where unknown
    `.execute(db);
  },
};
