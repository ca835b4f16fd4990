import { sql } from "kysely";
import type { Migration } from "kysely/migration";

/**
 * Indexes to find ids that differ only in case. The indexes do not forbid such ids, because existing databases
 * have some, and these stay valid.
 */
export const caselessIds: Migration = {
  async up(db) {
    await sql`create index nodes_caseless_id_idx on nodes (lower(id))`.execute(db);
    await sql`
      create index bans_caseless_node_id_idx on bans (lower(node_id)) where node_id is not null
    `.execute(db);
  },
};
