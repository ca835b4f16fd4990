import { sql } from "kysely";
import type { Migration } from "kysely/migration";

/** Records which versions of jobs became ready, and which versions have the specification of an earlier one. */
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
      'The newest version of which all placed executions became ready; null for none. Written by the leading scheduler.'`,
  sql`
    comment on column jobs.same_versions is
      'Earlier versions with the same specification as the newest one, which is a revert to them. Written with the version.'`,
  sql`
    comment on column jobs.undone is
      'The version whose halted update the newest version undid automatically; null if a user submitted it.'`,
  sql`
    comment on column job_versions.ready_at is
      'When all its placed executions became ready; null for never. Written by the leading scheduler.'`,
  sql`
    comment on column job_versions.origin is
      'The version that first had this specification; null if it is this one.'`,
];
