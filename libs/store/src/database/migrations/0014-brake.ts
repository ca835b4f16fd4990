import { sql } from "kysely";
import type { Migration } from "kysely/migration";

/** Reactions to losses, the counts that replicas report, and the brake. */
export const brake: Migration = {
  async up(db) {
    await sql`create sequence losses as bigint`.execute(db);
    await sql`comment on sequence losses is 'Numbers the losses of nodes in order.'`.execute(db);
    await sql`
      alter table node_sessions
        add column reaction text,
        add column loss bigint,
        add column loss_group text collate "C",
        add column lost_since timestamptz(3),
        add constraint node_sessions_reaction_known check (reaction in ('PENDING', 'ALLOWED')),
        add constraint node_sessions_loss_is_whole check ((loss is null) = (loss_group is null)),
        add constraint node_sessions_pending_is_lost check (reaction <> 'PENDING' or loss is not null)
    `.execute(db);
    await sql`
      create index node_sessions_loss_idx on node_sessions (loss) include (loss_group)
      where loss is not null`.execute(db);
    await sql`
      create index node_sessions_pending_idx on node_sessions (loss_group, loss)
      where reaction = 'PENDING'`.execute(db);
    await sql`alter table leases add column brake_sums jsonb`.execute(db);
    await sql`
      comment on column leases.brake_sums is
        'By group: how many nodes of a health replica are HEALTHY, and how many of those are close to their deadline; null for other leases. Written with each renewal.'
    `.execute(db);
    await createBrakes().execute(db);
    await sql`
      comment on table brakes is
        'Groups whose brake is not NORMAL, or recently was not. Written by the deciding health process; frozen_... and order... by admin.'
    `.execute(db);
  },
};

function createBrakes() {
  return sql`
    create table brakes (
      group_name text collate "C" not null,
      mode text not null default 'NORMAL',
      mode_since timestamptz(3) not null default now(),
      size integer not null default 0,
      window_loss bigint not null default 0,
      followed integer not null default 0,
      frozen_since timestamptz(3),
      frozen_by text,
      frozen_reason text,
      orders integer not null default 0,
      ordered_loss bigint not null default 0,
      ordered_by text not null default '',
      order_reason text not null default '',
      constraint brakes_pkey primary key (group_name),
      constraint brakes_mode_known check (mode in ('NORMAL', 'PARTIAL', 'FULL')),
      constraint brakes_freeze_is_whole check (num_nulls(frozen_since, frozen_by, frozen_reason) in (0, 3))
    )`;
}
