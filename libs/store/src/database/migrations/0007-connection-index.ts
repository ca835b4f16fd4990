import { sql } from "kysely";
import type { Migration } from "kysely/migration";

/** An index to list nodes of every type by their connection. */
export const connectionIndex: Migration = {
  async up(db) {
    await sql`
      create index node_sessions_connection_idx on node_sessions (connection, node_id)
    `.execute(db);
  },
};
