import { sql } from "kysely";
import type { Migration } from "kysely/migration";

/** When nodes were last drained or held for flapping, so that services can prefer other nodes. */
export const disturbedNodes: Migration = {
  async up(db) {
    await sql`set local lock_timeout = '2s'`.execute(db);
    await sql`alter table nodes add column disturbed_at timestamptz(3)`.execute(db);
    await sql`
      comment on column nodes.disturbed_at is
        'When a drain or a hold for flapping was last lifted; null for never. Written with holds.'
    `.execute(db);
  },
};
