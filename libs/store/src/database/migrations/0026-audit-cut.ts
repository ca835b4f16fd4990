import { sql } from "kysely";
import type { Migration } from "kysely/migration";

/** Where the audit log starts after its oldest entries were exported and removed. */
export const auditCut: Migration = {
  async up(db) {
    await sql`
      create table audit_cut (
        singleton boolean not null default true,
        sequence bigint not null default 0,
        hash bytea not null default decode(repeat('00', 32), 'hex'),
        seal bytea not null default '',
        cut_at timestamptz(3) not null default now(),
        constraint audit_cut_pkey primary key (singleton),
        constraint audit_cut_is_one_row check (singleton),
        constraint audit_cut_hash_size check (octet_length(hash) = 32)
      )`.execute(db);
    await sql`
      comment on table audit_cut is
        'One row: the last entry that was removed from audit_log, and its hash, from which the chain continues. Written by admin, and sealed with the cluster''s secret.'
    `.execute(db);
    await sql`insert into audit_cut default values`.execute(db);
  },
};
