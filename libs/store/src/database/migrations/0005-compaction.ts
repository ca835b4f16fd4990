import { sql } from "kysely";
import type { Migration } from "kysely/migration";

/** How far the log has been compacted. */
export const compaction: Migration = {
  async up(db) {
    await sql`
      alter table cluster
        add column compacted_revision bigint not null default 0,
        add constraint cluster_compacted_revision_positive check (compacted_revision >= 0)
    `.execute(db);
    await sql`
      comment on column cluster.compacted_revision is
        'Events up to this revision were deleted. Raised in the transaction that deletes them, never lowered.'
    `.execute(db);
  },
};
