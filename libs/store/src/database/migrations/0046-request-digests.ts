import { sql } from "kysely";
import type { Migration } from "kysely/migration";

/** Digests of the requests that have a request id. */
export const requestDigests: Migration = {
  async up(db) {
    // Limit the wait for locks, because calls write to this table constantly: see migrateToLatest().
    await sql`set local lock_timeout = '2s'`.execute(db);
    // Delete earlier requests, because their digests are unknown.
    await sql`delete from request_ids`.execute(db);
    await sql`
      alter table request_ids
        add column digest bytea not null,
        add constraint request_ids_digest_size check (octet_length(digest) = 32)
    `.execute(db);
    await sql`
      comment on column request_ids.digest is
        'SHA-256 of the content of the request. A request with the same id and another digest is refused.'
    `.execute(db);
  },
};
