import { sql } from "kysely";
import type { Migration } from "kysely/migration";

/** Which versions of jobs became ready, and which of them repeat an earlier one. */
export const jobReverts: Migration = {
  async up(db) {
    await sql`set local lock_timeout = '2s'`.execute(db);
    await sql`
      alter table jobs
        add column ready_version integer,
        add column same_versions integer[] not null default '{}',
        add column undone integer
    `.execute(db);
    await sql`alter table job_versions add column ready_at timestamptz(3), add column origin integer`.execute(db);
    for (const comment of COMMENTS) await comment.execute(db);
  },
};

const COMMENTS = [
  sql`
    comment on column jobs.ready_version is
      'The newest version of which all that was placed became ready; null for none. Written by the leading scheduler.'`,
  sql`
    comment on column jobs.same_versions is
      'Earlier versions with the specification of the newest one, which reverts to them. Written with the version.'`,
  sql`
    comment on column jobs.undone is
      'The version whose halted update the newest version undid automatically; null where somebody submitted it.'`,
  sql`
    comment on column job_versions.ready_at is
      'When all that was placed of it became ready; null for never. Written by the leading scheduler.'`,
  sql`
    comment on column job_versions.origin is
      'The version that first had the specification; null where it is this one.'`,
];
