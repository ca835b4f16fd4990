import { sql } from "kysely";
import type { Migration } from "kysely/migration";

/** The addresses that nodes joined from. */
export const joinedFrom: Migration = {
  async up(db) {
    await sql`set local lock_timeout = '2s'`.execute(db);
    // Add a nullable column without a default, so that existing rows are not rewritten. They have no value.
    await sql`alter table nodes add column joined_from text`.execute(db);
    await sql`
      comment on column nodes.joined_from is
        'The address, without a port, from which the node registered when it joined. Written by registry; deleted with the node.'
    `.execute(db);
  },
};
