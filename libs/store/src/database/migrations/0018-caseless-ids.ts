import { sql } from "kysely";
import type { Migration } from "kysely/migration";

/** Ids that differ in case alone are found. They are not forbidden here: records have such pairs, which go on. */
export const caselessIds: Migration = {
  async up(db) {
    await sql`create index nodes_caseless_id_idx on nodes (lower(id))`.execute(db);
    await sql`
      create index bans_caseless_node_id_idx on bans (lower(node_id)) where node_id is not null
    `.execute(db);
  },
};
