import { sql } from "kysely";
import type { Migration } from "kysely/migration";

/** How many nodes wait for an execution of each ops job or daemon. The leading scheduler counts them for existing jobs. */
export const waitingNodes: Migration = {
  async up(db) {
    await sql`set local lock_timeout = '2s'`.execute(db);
    await sql`alter table jobs add column waiting_nodes integer not null default 0`.execute(db);
    await sql`
      comment on column jobs.waiting_nodes is
        'How many nodes should run an ops job or daemon and have no execution of it; 0 for other types. Written by the
        leading scheduler.'`.execute(db);
  },
};
