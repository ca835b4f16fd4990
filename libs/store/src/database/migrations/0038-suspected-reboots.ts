import { sql } from "kysely";
import type { Migration } from "kysely/migration";

/** Reboots that may be the first sign of a second agent, and indexes to find nodes whose identity two agents use. */
export const suspectedReboots: Migration = {
  async up(db) {
    await sql`set local lock_timeout = '2s'`.execute(db);
    // Add a nullable column without a default, so that existing rows are not rewritten.
    await sql`alter table node_sessions add column reboot_suspected jsonb`.execute(db);
    await sql`
      comment on column node_sessions.reboot_suspected is
        'Boot ids before and after a change that may be a reboot or a second agent, and when; null for none. Written by health.'
    `.execute(db);
    await sql`drop index node_sessions_troubled_idx`.execute(db);
    await sql`
      create index node_sessions_troubled_idx on node_sessions (replica_id)
      where flapping_since is not null or gpu_troubles <> '[]' or rebooted_at is not null
        or reboot_suspected is not null or duplicated_since is not null
    `.execute(db);
    await sql`drop index nodes_troubled_idx`.execute(db);
    await sql`
      create index nodes_troubled_idx on nodes (id)
      where missing_hardware <> '[]' or holds @> '[{"kind": "FLAPPING"}]' or holds @> '[{"kind": "HARDWARE"}]'
        or holds @> '[{"kind": "IDENTITY"}]'
    `.execute(db);
  },
};
