import { sql } from "kysely";
import type { Migration } from "kysely/migration";

/** Whether the rollout of each job is complete. The leading scheduler sets it for existing jobs. */
export const jobRollouts: Migration = {
  async up(db) {
    await sql`set local lock_timeout = '2s'`.execute(db);
    await sql`alter table jobs add column rolled_out boolean not null default false`.execute(db);
    await sql`
      comment on column jobs.rolled_out is
        'Whether all wanted executions of the newest version and run were ready for long enough. Set by the leading
        scheduler, cleared with each version, run and count.'`.execute(db);
  },
};
