import { sql } from "kysely";
import type { Migration } from "kysely/migration";

/** Webhooks: where events are delivered over HTTPS, and how far the delivery to each webhook has got. */
export const webhooks: Migration = {
  async up(db) {
    await sql`
      create table webhooks (
        name text collate "C" not null,
        url text not null,
        types text[] not null default '{}',
        exclude_types text[] not null default '{}',
        label_selector text not null default '',
        description text not null default '',
        paused boolean not null default false,
        pause_reason text,
        pause_message text not null default '',
        paused_at timestamptz(3),
        secret bytea not null,
        former_secret bytea,
        former_until timestamptz(3),
        revision bigint not null,
        lost_through bigint not null default 0,
        told_behind boolean not null default false,
        succeeded_at timestamptz(3),
        failed_at timestamptz(3),
        failure text not null default '',
        generation bigint not null default 0,
        version bigint not null default 1,
        created_at timestamptz(3) not null default now(),
        updated_at timestamptz(3) not null default now(),
        updated_by text not null,
        constraint webhooks_pkey primary key (name),
        constraint webhooks_pause_reason_known
          check (pause_reason in ('DELIVERY_FAILED', 'GONE', 'SECRET_UNREADABLE')),
        constraint webhooks_former_secret_ends check ((former_secret is null) = (former_until is null))
      )`.execute(db);
    await sql`
      comment on table webhooks is
        'Receivers of events. Their settings are written by admin methods; pause_..., revision, lost_through, succeeded_at, failed_at and failure by the admin process that holds the lease deliver-webhooks, fenced by generation. Secrets are sealed.'
    `.execute(db);
    await sql`
      create table webhook_backlog (
        webhook text collate "C" not null,
        subject text collate "C" not null,
        from_revision bigint not null,
        since timestamptz(3) not null,
        failures integer not null,
        failure text not null,
        constraint webhook_backlog_pkey primary key (webhook, subject),
        constraint webhook_backlog_webhook_fkey foreign key (webhook) references webhooks (name) on delete cascade
      )`.execute(db);
    await sql`
      comment on table webhook_backlog is
        'Subjects whose events wait, from a revision on, because one event could not be delivered to the webhook; at most 64 per webhook. Written with the row of webhooks, fenced by its generation.'
    `.execute(db);
  },
};
