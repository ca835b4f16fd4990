import { sql } from "kysely";
import type { Migration } from "kysely/migration";

/** The failure detector's tolerance, and how often agents report. */
export const healthPolicies: Migration = {
  async up(db) {
    await sql`
      create table health_policies (
        scope text collate "C" not null,
        kind text not null,
        node_id text collate "C",
        facts jsonb not null,
        version integer not null default 1,
        actor text not null,
        message text not null,
        created_at timestamptz(3) not null default now(),
        updated_at timestamptz(3) not null default now(),
        constraint health_policies_pkey primary key (scope),
        constraint health_policies_kind_known check (kind in ('default', 'group', 'node')),
        constraint health_policies_node_named check ((kind = 'node') = (node_id is not null)),
        constraint health_policies_node_fkey foreign key (node_id) references nodes (id) on delete cascade,
        constraint health_policies_facts_is_object check (jsonb_typeof(facts) = 'object')
      )`.execute(db);
    await sql`
      comment on table health_policies is
        'Health policies that operators set; scope is the subject of their events. Written by admin; the policy of a node is deleted with it.'
    `.execute(db);
    await sql`create index health_policies_node_idx on health_policies (node_id) where node_id is not null`.execute(db);
    await sql`
      create table configured_health_policy (
        singleton boolean not null default true,
        configured jsonb not null,
        instance text not null,
        updated_at timestamptz(3) not null default now(),
        constraint configured_health_policy_pkey primary key (singleton),
        constraint configured_health_policy_is_one_row check (singleton),
        constraint configured_health_policy_is_object check (jsonb_typeof(configured) = 'object')
      )`.execute(db);
    await sql`
      comment on table configured_health_policy is
        'One row: the values that apply without policies, from the configuration of the health replica that started last. Admin uses them for checks and previews.'
    `.execute(db);
  },
};
