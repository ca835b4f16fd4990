import { sql } from "kysely";
import type { Migration } from "kysely/migration";

/** Access tokens, and the requests that were already answered. */
export const access: Migration = {
  async up(db) {
    await sql`
      create table access_tokens (
        id text collate "C" not null,
        name text not null,
        role text not null,
        hash bytea not null,
        created_at timestamptz(3) not null default now(),
        revoked_at timestamptz(3),
        constraint access_tokens_pkey primary key (id),
        constraint access_tokens_hash_key unique (hash),
        constraint access_tokens_hash_size check (octet_length(hash) = 32)
      )`.execute(db);
    await sql`
      comment on table access_tokens is
        'Bearer tokens of people and programs, as SHA-256 hashes. Written by admin.'
    `.execute(db);
    await sql`
      create table used_challenges (
        nonce bytea not null,
        used_at timestamptz(3) not null default now(),
        constraint used_challenges_pkey primary key (nonce)
      )`.execute(db);
    await sql`
      comment on table used_challenges is
        'Nonces that were used, so that none is used twice. Not needed after the nonce has expired.'
    `.execute(db);
    await sql`create index used_challenges_used_at_idx on used_challenges (used_at)`.execute(db);
    await sql`
      create table request_ids (
        caller text collate "C" not null,
        method text collate "C" not null,
        request_id text collate "C" not null,
        answer bytea,
        created_at timestamptz(3) not null default now(),
        constraint request_ids_pkey primary key (caller, method, request_id)
      )`.execute(db);
    await sql`
      comment on table request_ids is
        'The first response to each request with a request id: repeating the id has no second effect.'
    `.execute(db);
    await sql`create index request_ids_created_at_idx on request_ids (created_at)`.execute(db);
  },
};
