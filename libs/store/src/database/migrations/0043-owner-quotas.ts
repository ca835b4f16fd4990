import { sql } from "kysely";
import type { Migration } from "kysely/migration";

/**
 * The part of its owner's quota that each job uses. With it, an owner's usage can be computed without reading the
 * specs.
 */
export const ownerQuotas: Migration = {
  async up(db) {
    await sql`set local lock_timeout = '2s'`.execute(db);
    await sql`
      alter table jobs
        add column millicores bigint not null default 0,
        add column one_node boolean not null default false`.execute(db);
    await sql`
      update jobs set
        millicores = coalesce((spec -> 'resources' ->> 'millicores')::bigint, 0),
        one_node = coalesce(spec -> 'constraints' ->> 'node', '') <> ''`.execute(db);
    await sql`
      comment on column jobs.millicores is
        'The millicores that each execution of the newest version requests. Written by JobService.'
    `.execute(db);
    await sql`
      comment on column jobs.one_node is 'Whether the newest version names the one node that runs it. Written by JobService.'
    `.execute(db);
    await sql`create index jobs_actor_idx on jobs (actor)`.execute(db);
  },
};
