import { sql } from "kysely";
import type { Migration } from "kysely/migration";

/** How many sessions each health replica holds. A replica reports this number when it renews its lease. */
export const leaseSessions: Migration = {
  async up(db) {
    await sql`
      alter table leases
        add column sessions integer,
        add constraint leases_sessions_not_negative check (sessions >= 0)
    `.execute(db);
    await sql`
      comment on column leases.sessions is
        'Number of agent sessions of a health replica at its last renewal; null for other leases. Replicas use it to share the agents evenly.'
    `.execute(db);
  },
};
