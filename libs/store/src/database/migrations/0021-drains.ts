import { sql } from "kysely";
import type { Migration } from "kysely/migration";

/**
 * Drains that wait for other nodes of their selection, and a function that derives the shown scheduling of a node,
 * including drains, from its holds. The column `scheduling` does not include drains, so the table is not rewritten.
 */
export const drains: Migration = {
  async up(db) {
    // Limit the wait for locks, because the table of nodes is in use: see migrateToLatest().
    await sql`set local lock_timeout = '2s'`.execute(db);
    await sql`
      alter table drains
        add column deadline_ms bigint not null,
        add column selection text not null default '',
        add column max_parallel integer not null default 0,
        add column unconfirmed boolean not null default false`.execute(db);
    await sql`
      comment on column drains.selection is
        'The id of the selection in which at most max_parallel nodes are drained at a time; empty for no such limit.'
    `.execute(db);
    await sql`
      comment on column drains.deadline is 'Null while the drain waits for other nodes of its selection.'
    `.execute(db);
    await sql`create index drains_waiting_idx on drains (selection) where deadline is null`.execute(db);
    await sql`
      create function scheduling_of(holds jsonb) returns text language sql immutable parallel safe as $$
        select case
          when holds = '[]'::jsonb then 'ELIGIBLE'
          when holds @> '[{"kind": "DRAIN", "unconfirmed": true}]'::jsonb then 'UNCONFIRMED'
          when holds @> '[{"kind": "DRAIN", "drained": true}]'::jsonb then 'DRAINED'
          when holds @> '[{"kind": "DRAIN"}]'::jsonb then 'DRAINING'
          else 'INELIGIBLE'
        end
      $$`.execute(db);
    await sql`create index nodes_scheduling_of_idx on nodes (scheduling_of(holds), id)`.execute(db);
    await sql`create index nodes_holds_until_idx on nodes (id) where holds @? '$[*].untilMs'::jsonpath`.execute(db);
  },
};
