import { sql } from "kysely";
import type { Migration } from "kysely/migration";

/**
 * Drains that wait for others of their selection, and what is shown of nodes that drain. What a node's column says of
 * its scheduling knows no drain: reading it from the holds needs no rewriting of the table.
 */
export const drains: Migration = {
  async up(db) {
    // The table of nodes is in use: see migrateToLatest().
    await sql`set local lock_timeout = '2s'`.execute(db);
    await sql`
      alter table drains
        add column deadline_ms bigint not null,
        add column selection text not null default '',
        add column max_parallel integer not null default 0,
        add column unconfirmed boolean not null default false`.execute(db);
    await sql`
      comment on column drains.selection is
        'Names the selection of which max_parallel nodes are drained at a time; empty where all are.'
    `.execute(db);
    await sql`
      comment on column drains.deadline is 'Null while it waits for others of its selection.'
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
