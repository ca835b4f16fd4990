import { sql } from "kysely";
import type { Migration } from "kysely/migration";

/** How far the log has been relayed, and the last runs of upkeep. */
export const relay: Migration = {
  async up(db) {
    await sql`
      create table event_relay (
        singleton boolean not null default true,
        revision bigint not null default 0,
        generation integer not null default 0,
        saved_at timestamptz(3) not null default now(),
        constraint event_relay_pkey primary key (singleton),
        constraint event_relay_is_one_row check (singleton),
        constraint event_relay_revision_positive check (revision >= 0)
      ) with (fillfactor = 50)`.execute(db);
    await sql`
      comment on table event_relay is
        'One row: NATS acknowledged everything up to revision. Written by the registry with the relay''s lease as compare-and-set on generation, which rises with each holder and each republication.'
    `.execute(db);
    await sql`insert into event_relay default values`.execute(db);
    await sql`
      create table upkeep_runs (
        name text collate "C" not null,
        instance text collate "C" not null,
        started_at timestamptz(3) not null default now(),
        ended_at timestamptz(3),
        outcome text not null,
        row_count bigint not null default 0,
        message text not null default '',
        runs bigint not null default 1,
        constraint upkeep_runs_pkey primary key (name),
        constraint upkeep_runs_outcome_known check (outcome in ('RUNNING', 'SUCCEEDED', 'FAILED'))
      )`.execute(db);
    await sql`
      comment on table upkeep_runs is
        'The last run of each kind of upkeep, for display. Written by the registry with the lease of upkeep.'
    `.execute(db);
  },
};
