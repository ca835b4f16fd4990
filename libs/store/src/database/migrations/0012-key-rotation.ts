import { sql } from "kysely";
import type { Migration } from "kysely/migration";

/** The next key that each node has offered, and the machines that opened each node's sessions. */
export const keyRotation: Migration = {
  async up(db) {
    await sql`
      alter table node_identities
        add column next_public_key bytea,
        add column next_fingerprint text,
        add column rotated_at timestamptz(3),
        add column rotation_requested_at timestamptz(3),
        add constraint node_identities_next_fingerprint_key unique (next_fingerprint),
        add constraint node_identities_next_is_whole
          check ((next_public_key is null) = (next_fingerprint is null)),
        add constraint node_identities_next_key_size check (octet_length(next_public_key) = 32),
        add constraint node_identities_next_differs check (next_fingerprint <> fingerprint)
    `.execute(db);
    await sql`
      comment on table node_identities is
        'The key with which each node proves its identity, and the next key that it has offered. Written by registry, and by health when the next key is first used in a Hello; rotation_requested_at is written by admin. Deleted with the node.'
    `.execute(db);
    await sql`
      alter table node_sessions
        add column machines jsonb not null default '[]',
        add column duplicated_since timestamptz(3),
        add constraint node_sessions_machines_is_list check (jsonb_typeof(machines) = 'array')
    `.execute(db);
    await sql`
      create index node_sessions_duplicated_idx on node_sessions (replica_id)
      where duplicated_since is not null`.execute(db);
  },
};
