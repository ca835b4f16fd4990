import { sql } from "kysely";
import type { Migration } from "kysely/migration";

/** Nodes, their keys and labels, and their tombstones. */
export const nodes: Migration = {
  async up(db) {
    await sql`
      create table nodes (
        id text collate "C" not null,
        type text not null,
        membership text not null,
        membership_since timestamptz(3) not null default now(),
        membership_reason text not null,
        membership_message text not null,
        membership_actor text not null,
        holds jsonb not null default '[]',
        scheduling text not null
          generated always as (case when holds = '[]'::jsonb then 'ELIGIBLE' else 'INELIGIBLE' end) stored,
        eligible_since timestamptz(3) not null default now(),
        mark_since timestamptz(3),
        mark_message text,
        mark_actor text,
        info jsonb,
        info_digest text,
        cores integer not null default 0,
        memory_bytes bigint not null default 0,
        disk_bytes bigint not null default 0,
        gpus integer not null default 0,
        version integer not null default 1,
        created_at timestamptz(3) not null default now(),
        updated_at timestamptz(3) not null default now(),
        constraint nodes_pkey primary key (id),
        constraint nodes_id_syntax check (id ~ '^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$'),
        constraint nodes_type_known check (type in ('ORCHESTRATOR', 'COMPUTE')),
        constraint nodes_membership_known check (membership in ('PENDING', 'APPROVED', 'REJECTED')),
        constraint nodes_holds_is_list check (jsonb_typeof(holds) = 'array'),
        constraint nodes_mark_is_whole check (num_nulls(mark_since, mark_message, mark_actor) in (0, 3)),
        constraint nodes_info_has_digest check ((info is null) = (info_digest is null))
      )`.execute(db);
    await sql`
      comment on table nodes is
        'The registered nodes: decisions about each node, and its report about itself. Written by registry and admin while they lock the row.'
    `.execute(db);
    // Create one index for each state and each list order, with the id last, so that reading a page starts at its first
    // row.
    for (const column of LISTED_COLUMNS) {
      await sql`create index ${sql.ref(`nodes_${column}_idx`)} on nodes (${sql.ref(column)}, id)`.execute(db);
    }
    await createIdentities().execute(db);
    await sql`
      comment on table node_identities is
        'The key with which each node proves its identity. Written by registry; deleted with the node.'
    `.execute(db);
    await createLabels().execute(db);
    await sql`
      comment on table node_labels is
        'Labels of every source. effective marks the one that applies for each key, so that selectors can use an index.'
    `.execute(db);
    await sql`create unique index node_labels_effective_key on node_labels (node_id, key) where effective`.execute(db);
    await sql`create index node_labels_selector_idx on node_labels (key, value, node_id) where effective`.execute(db);
    await createTombstones().execute(db);
    await sql`
      comment on table node_tombstones is
        'Removed nodes: by whom, when and why they were removed, and their last state. Kept for 30 days.'
    `.execute(db);
    await sql`create index node_tombstones_node_idx on node_tombstones (node_id, id)`.execute(db);
    await sql`create index node_tombstones_removed_at_idx on node_tombstones (removed_at)`.execute(db);
  },
};

const LISTED_COLUMNS = [
  "type",
  "membership",
  "scheduling",
  "cores",
  "memory_bytes",
  "disk_bytes",
  "gpus",
  "created_at",
];

function createIdentities() {
  return sql`
    create table node_identities (
      node_id text collate "C" not null,
      public_key bytea not null,
      fingerprint text not null,
      created_at timestamptz(3) not null default now(),
      constraint node_identities_pkey primary key (node_id),
      constraint node_identities_node_fkey foreign key (node_id) references nodes (id) on delete cascade,
      constraint node_identities_fingerprint_key unique (fingerprint),
      constraint node_identities_key_size check (octet_length(public_key) = 32)
    )`;
}

function createLabels() {
  return sql`
    create table node_labels (
      node_id text collate "C" not null,
      tier text not null,
      key text collate "C" not null,
      value text collate "C" not null,
      effective boolean not null,
      constraint node_labels_pkey primary key (node_id, key, tier),
      constraint node_labels_node_fkey foreign key (node_id) references nodes (id) on delete cascade,
      constraint node_labels_tier_known check (tier in ('agent', 'token', 'operator'))
    )`;
}

function createTombstones() {
  return sql`
    create table node_tombstones (
      id bigint not null generated always as identity,
      node_id text collate "C" not null,
      node_type text not null,
      removed_at timestamptz(3) not null default now(),
      actor text not null,
      reason text not null,
      message text not null,
      last_epoch integer not null,
      last_state jsonb not null,
      constraint node_tombstones_pkey primary key (id)
    )`;
}
