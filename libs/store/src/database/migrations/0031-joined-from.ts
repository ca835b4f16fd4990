import { sql } from "kysely";
import type { Migration } from "kysely/migration";

/** Where nodes registered from when they joined. */
export const joinedFrom: Migration = {
  async up(db) {
    await sql`set local lock_timeout = '2s'`.execute(db);
    // Nullable and without a default: the rows that there are need not be written again, and keep none.
    await sql`alter table nodes add column joined_from text`.execute(db);
    await sql`
      comment on column nodes.joined_from is
        'The address, without a port, from which the node registered when it joined. Written by registry; gone with the node.'
    `.execute(db);
  },
};
