import { sql } from "kysely";
import type { Migration } from "kysely/migration";

/** The expiry of access tokens, their creators, their revocation and their last use. */
export const accessTokens: Migration = {
  async up(db) {
    // Use a constant as the default, so that existing rows are not rewritten. Existing tokens come from the
    // configuration or the first start.
    await sql`
      alter table access_tokens
        add column number bigint not null generated always as identity,
        add column created_by text not null default 'system',
        add column expires_at timestamptz(3),
        add column last_used_at timestamptz(3),
        add column revoked_by text,
        add column revoke_reason text,
        add constraint access_tokens_number_key unique (number)
    `.execute(db);
    await sql`
      comment on table access_tokens is
        'Bearer tokens of people and programs, as SHA-256 hashes. Written by admin; last_used_at by every process, about once a minute.'
    `.execute(db);
  },
};
