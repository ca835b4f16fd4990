import { sql } from "kysely";
import type { Migration } from "kysely/migration";

/**
 * Session events name the replica that loses the session, so that a replica reads only the events for sessions it
 * loses. The column is null in older events, and in events that processes of the previous release append during the
 * update. Every replica reads events in which the column is null.
 */
export const displacedReplicas: Migration = {
  async up(db) {
    // Limit the wait for locks, because the log is in constant use: see migrateToLatest().
    await sql`set local lock_timeout = '2s'`.execute(db);
    await sql`alter table events add column displaces text`.execute(db);
    await sql`
      comment on column events.displaces is
        'In events about sessions: the replica that loses the session, empty for none. Null in events of other types, and in events of releases without this column.'
    `.execute(db);
    await sql`
      create or replace function append_events(batch jsonb) returns bigint language plpgsql volatile as $$
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
        insert into events (revision, at, type, subject, actor, reason, message, before, after, displaces)
        select
          first_revision + item.position - 1,
          clock_timestamp(),
          item.event ->> 'type',
          item.event ->> 'subject',
          item.event ->> 'actor',
          item.event ->> 'reason',
          item.event ->> 'message',
          nullif(item.event -> 'before', 'null'),
          nullif(item.event -> 'after', 'null'),
          item.event ->> 'displaces'
        from jsonb_array_elements(batch) with ordinality as item (event, position);
        perform pg_notify('rollcall_events', last_revision::text);
        return last_revision;
      end
      $$`.execute(db);
  },
};
