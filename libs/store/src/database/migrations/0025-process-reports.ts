import { sql } from "kysely";
import type { Migration } from "kysely/migration";

/** Reports of the control plane's processes about themselves, for diagnosis. */
export const processReports: Migration = {
  async up(db) {
    await sql`
      create table process_reports (
        instance text collate "C" not null,
        service text not null,
        host text not null,
        facts jsonb not null,
        reported_at timestamptz(3) not null default now(),
        constraint process_reports_pkey primary key (instance),
        constraint process_reports_facts_are_object check (jsonb_typeof(facts) = 'object')
      )`.execute(db);
    await sql`
      comment on table process_reports is
        'Reports of processes of the control plane about themselves: version, clock, descriptors, certificate. Each process writes its own row and deletes rows that are a day old.'
    `.execute(db);
  },
};
