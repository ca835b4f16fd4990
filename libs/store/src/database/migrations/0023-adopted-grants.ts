import { sql } from "kysely";
import type { Migration } from "kysely/migration";

/** The ports and GPUs of executions in the reports of nodes, and whether a scheduler has ever led. */
export const adoptedGrants: Migration = {
  async up(db) {
    // Limit the wait for locks, because nodes write reports constantly: see migrateToLatest().
    await sql`set local lock_timeout = '2s'`.execute(db);
    await sql`
      alter table execution_observations
        add column ports jsonb not null default '{}',
        add column gpu_uuids text[] not null default '{}'`.execute(db);
    await sql`alter table cluster add column scheduler_led boolean not null default false`.execute(db);
    await sql`
      update cluster set scheduler_led = true
      where exists (select from leases where name = 'scheduler') or exists (select from executions)`.execute(db);
  },
};
