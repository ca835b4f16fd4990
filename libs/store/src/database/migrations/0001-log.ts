import { sql } from "kysely";
import type { Migration } from "kysely/migration";

/** The cluster's identity, and the log of all changes. */
export const log: Migration = {
  async up(db) {
    await sql`
      create table cluster (
        singleton boolean not null default true,
        cluster_id uuid not null default gen_random_uuid(),
        secret bytea not null,
        log_id uuid not null default gen_random_uuid(),
        log_origin text not null,
        created_at timestamptz(3) not null default now(),
        constraint cluster_pkey primary key (singleton),
        constraint cluster_is_one_row check (singleton),
        constraint cluster_secret_size check (octet_length(secret) = 32)
      )`.execute(db);
    await sql`
      comment on table cluster is
        'One row: the identity of this cluster. Written by the first process that opens the store. log_id changes when the log has another history.'
    `.execute(db);
    await sql`
      create table events (
        revision bigint not null,
        id uuid not null default gen_random_uuid(),
        at timestamptz(3) not null,
        type text not null,
        subject text collate "C" not null,
        actor text not null,
        reason text not null,
        message text not null,
        before jsonb,
        after jsonb,
        constraint events_pkey primary key (revision),
        constraint events_id_key unique (id)
      )`.execute(db);
    await sql`
      comment on table events is
        'The log: one row per change, with revisions in commit order. Written only by append_events, never updated.'
    `.execute(db);
    await sql`create index events_subject_idx on events (subject, revision)`.execute(db);
    await sql`create sequence events_revision as bigint owned by events.revision`.execute(db);
    await appendEventsFunction().execute(db);
  },
};

/**
 * Allocate revisions under a lock that is held until the transaction ends, so that they appear in commit order. When a
 * transaction gets a revision, all lower ones are visible or rolled back.
 */
function appendEventsFunction() {
  return sql`
    create function append_events(batch jsonb) returns bigint language plpgsql volatile as $$
    declare
      size constant bigint := jsonb_array_length(batch);
      first_revision bigint;
      last_revision bigint;
    begin
      if size = 0 then
        return 0;
      end if;
      perform pg_advisory_xact_lock(5139811260874521047);
      first_revision := nextval('events_revision');
      last_revision := first_revision + size - 1;
      if size > 1 then
        perform setval('events_revision', last_revision);
      end if;
      insert into events (revision, at, type, subject, actor, reason, message, before, after)
      select
        first_revision + item.position - 1,
        clock_timestamp(),
        item.event ->> 'type',
        item.event ->> 'subject',
        item.event ->> 'actor',
        item.event ->> 'reason',
        item.event ->> 'message',
        nullif(item.event -> 'before', 'null'),
        nullif(item.event -> 'after', 'null')
      from jsonb_array_elements(batch) with ordinality as item (event, position);
      perform pg_notify('rollcall_events', last_revision::text);
      return last_revision;
    end
    $$`;
}
