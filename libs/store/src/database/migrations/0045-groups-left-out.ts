import { sql } from "kysely";
import type { Migration } from "kysely/migration";

/** Whether the issuer left out the groups of a console session's owner. */
export const groupsLeftOut: Migration = {
  async up(db) {
    // Limit the wait for locks, because calls look up tokens constantly: see migrateToLatest().
    await sql`set local lock_timeout = '2s'`.execute(db);
    await sql`alter table access_tokens add column groups_left_out text`.execute(db);
    await sql`alter table sign_in_codes add column groups_left_out text`.execute(db);
    for (const comment of COMMENTS) await comment.execute(db);
  },
};

const COMMENTS = [
  sql`
    comment on column access_tokens.groups_left_out is
      'The claim with which the issuer reported that it omitted the user''s groups; null for none. Written at sign-in.'`,
  sql`
    comment on column sign_in_codes.groups_left_out is
      'The claim with which the issuer reported that it omitted the user''s groups; null for none.'`,
];
