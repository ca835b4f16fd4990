import { sql } from "kysely";
import type { Migration } from "kysely/migration";

/** Ids and keys that operators banned. */
export const bans: Migration = {
  async up(db) {
    await sql`
      create table bans (
        id bigint not null generated always as identity,
        node_id text collate "C",
        fingerprint text collate "C",
        reason text not null,
        actor text not null,
        at timestamptz(3) not null default now(),
        constraint bans_pkey primary key (id),
        constraint bans_name_something check (num_nonnulls(node_id, fingerprint) > 0),
        constraint bans_node_id_syntax check (node_id ~ '^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$')
      )`.execute(db);
    await sql`
      comment on table bans is
        'Node ids and keys that cannot register until the ban is lifted. Written by admin; kept when the node is deleted.'
    `.execute(db);
    await sql`
      create unique index bans_node_id_key on bans (node_id) where node_id is not null
    `.execute(db);
    await sql`
      create unique index bans_fingerprint_key on bans (fingerprint) where fingerprint is not null
    `.execute(db);
  },
};
