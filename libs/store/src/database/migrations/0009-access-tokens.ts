import { sql } from "kysely";
import type { Migration } from "kysely/migration";

/** Until when access tokens are good, who made and ended them, and when they were last used. */
export const accessTokens: Migration = {
  async up(db) {
    // A constant as default: the rows that there are were brought by the configuration or the first start, and are not
    // written again.
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
