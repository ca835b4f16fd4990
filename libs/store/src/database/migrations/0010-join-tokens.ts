import { sql } from "kysely";
import type { Migration } from "kysely/migration";

/** Join tokens, and the tokens that nodes joined with. */
export const joinTokens: Migration = {
  async up(db) {
    await createTokens().execute(db);
    await sql`
      comment on table join_tokens is
        'Tokens that let machines join, as SHA-256 hashes. Written by admin; a registry locks the row of the token that it accepts.'
    `.execute(db);
    await sql`create index join_tokens_expires_at_idx on join_tokens (expires_at)`.execute(db);
    await sql`
      create table join_token_uses (
        id bigint not null generated always as identity,
        token_id text collate "C" not null,
        node_id text collate "C" not null,
        fingerprint text not null,
        at timestamptz(3) not null default now(),
        constraint join_token_uses_pkey primary key (id),
        constraint join_token_uses_token_fkey foreign key (token_id) references join_tokens (id) on delete cascade
      )`.execute(db);
    await sql`
      comment on table join_token_uses is
        'One row for each machine that joined with a join token. Written by registry while it locks the token''s row; deleted with the token.'
    `.execute(db);
    await sql`create index join_token_uses_token_idx on join_token_uses (token_id, id)`.execute(db);
    // Use constants as defaults, so that existing rows are not rewritten.
    await sql`
      alter table nodes
        add column join_token_id text collate "C",
        add column ephemeral boolean not null default false,
        add column joined_without_token boolean not null default false
    `.execute(db);
    await sql`create index nodes_ephemeral_idx on nodes (id) where ephemeral`.execute(db);
    await sql`create index nodes_joined_without_token_idx on nodes (id) where joined_without_token`.execute(db);
  },
};

function createTokens() {
  return sql`
    create table join_tokens (
      id text collate "C" not null,
      number bigint not null generated always as identity,
      hash bytea not null,
      description text not null,
      max_uses integer,
      expires_at timestamptz(3),
      node_name_pattern text not null,
      labels jsonb not null,
      preauthorized boolean not null,
      ephemeral boolean not null,
      created_at timestamptz(3) not null default now(),
      created_by text not null,
      revoked_at timestamptz(3),
      revoked_by text,
      revoke_reason text,
      constraint join_tokens_pkey primary key (id),
      constraint join_tokens_number_key unique (number),
      constraint join_tokens_hash_size check (octet_length(hash) = 32),
      constraint join_tokens_max_uses_positive check (max_uses > 0),
      constraint join_tokens_revocation_is_whole check (num_nulls(revoked_at, revoked_by, revoke_reason) in (0, 3))
    )`;
}
