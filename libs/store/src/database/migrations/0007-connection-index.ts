import { type Migration, sql } from "kysely";

/** Nodes of every type can be listed by their connection. */
export const connectionIndex: Migration = {
  async up(db) {
    await sql`
      create index node_sessions_connection_idx on node_sessions (connection, node_id)
    `.execute(db);
  },
};
