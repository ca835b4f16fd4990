import { sql } from "kysely";
import type { Migration } from "kysely/migration";

/** When each execution was ordered to stop. Unknown for executions that were already stopping. */
export const stopOrders: Migration = {
  async up(db) {
    await sql`set local lock_timeout = '2s'`.execute(db);
    await sql`alter table executions add column stop_ordered_at timestamptz(3)`.execute(db);
    await sql`
      comment on column executions.stop_ordered_at is
        'When desired last became STOP, by the clock of the database; null for never or unknown. Written by the leading
        scheduler.'`.execute(db);
  },
};
