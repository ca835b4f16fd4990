import { sql } from "kysely";
import type { Migration } from "kysely/migration";

/**
 * Browsers' console sessions, and the codes that start them. A session is a row in the table of access tokens, next to
 * the token that it acts for.
 */
export const consoleSessions: Migration = {
  async up(db) {
    // Limit the wait for locks, because calls look up tokens constantly: see migrateToLatest().
    await sql`set local lock_timeout = '2s'`.execute(db);
    await sql`
      alter table access_tokens
        add column kind text not null default 'TOKEN',
        add column owner_token text collate "C",
        add column owner_issuer text,
        add column owner_subject text,
        add column ends_at timestamptz(3),
        add column idle_ms integer,
        add constraint access_tokens_kind_is_known check (kind in ('TOKEN', 'CONSOLE_SESSION')),
        add constraint access_tokens_owner_token_fkey
          foreign key (owner_token) references access_tokens (id) on delete cascade,
        add constraint access_tokens_session_is_whole check (
          case kind
            when 'TOKEN' then
              num_nonnulls(owner_token, owner_issuer, owner_subject, ends_at, idle_ms) = 0
            else
              expires_at is not null and ends_at is not null and idle_ms > 0
              and (owner_token is null) = (owner_subject is not null)
              and (owner_issuer is null) = (owner_subject is null)
          end
        )`.execute(db);
    await sql`
      create index access_tokens_sessions_of_token on access_tokens (owner_token) where owner_token is not null
    `.execute(db);
    await sql`
      create index access_tokens_sessions_of_person on access_tokens (owner_issuer, owner_subject)
      where owner_subject is not null`.execute(db);
    await sql`
      comment on table access_tokens is
        'Bearer tokens of people and programs, and sessions of the console, as SHA-256 hashes. Written by admin and by the console; last_used_at and the end of sessions by every process, about once a minute.'
    `.execute(db);
    await sql`
      create table sign_in_codes (
        hash bytea not null,
        role text not null,
        name text not null,
        owner_token text collate "C",
        owner_issuer text,
        owner_subject text,
        session_ends_at timestamptz(3),
        created_at timestamptz(3) not null default now(),
        expires_at timestamptz(3) not null,
        used_at timestamptz(3),
        constraint sign_in_codes_pkey primary key (hash),
        constraint sign_in_codes_hash_size check (octet_length(hash) = 32),
        constraint sign_in_codes_owner_token_fkey
          foreign key (owner_token) references access_tokens (id) on delete cascade,
        constraint sign_in_codes_has_one_owner check (
          (owner_token is null) = (owner_subject is not null) and (owner_issuer is null) = (owner_subject is null)
        )
      )`.execute(db);
    await sql`create index sign_in_codes_expires_at on sign_in_codes (expires_at)`.execute(db);
    await sql`
      comment on table sign_in_codes is
        'Single-use codes with which browsers sign in, as SHA-256 hashes, valid for about ten minutes. Written by the console.'
    `.execute(db);
  },
};
