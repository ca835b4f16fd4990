import { sql } from "kysely";
import type { Migration } from "kysely/migration";

/** How much each health replica holds, told with what it writes anyway. */
export const leaseSessions: Migration = {
  async up(db) {
    await sql`
      alter table leases
        add column sessions integer,
        add constraint leases_sessions_not_negative check (sessions >= 0)
    `.execute(db);
    await sql`
      comment on column leases.sessions is
        'Agents'' sessions that a health replica held when it last renewed; null for what holds none. Replicas share the agents evenly by it.'
    `.execute(db);
  },
};
