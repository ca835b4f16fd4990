import { sql } from "kysely";
import type { Migration } from "kysely/migration";

/** What is observed of nodes, and who observes. */
export const sessions: Migration = {
  async up(db) {
    await createSessions().execute(db);
    await sql`
      comment on table node_sessions is
        'Who is well: connection, detected health and the session that each node''s replica holds. Written by health replicas as compare-and-set on (replica_id, epoch); marked alone is written by admin.'
    `.execute(db);
    await sql`create index node_sessions_status_idx on node_sessions (status, node_id)`.execute(db);
    await sql`
      create index node_sessions_replica_idx on node_sessions (replica_id, node_id)
      where replica_id is not null`.execute(db);
    // Rows are rewritten every two seconds: room on the page keeps the rewriting off the indexes.
    await sql`
      create table leases (
        name text collate "C" not null,
        instance text collate "C" not null,
        service text not null,
        address text not null,
        counter integer not null default 1,
        taken_at timestamptz(3) not null default now(),
        renewed_at timestamptz(3) not null default now(),
        constraint leases_pkey primary key (name)
      ) with (fillfactor = 50)`.execute(db);
    await sql`
      comment on table leases is
        'Who is alive, and who leads. Each holder raises its counter; that it stands still is judged by the clock of the observer alone.'
    `.execute(db);
    await sql`create index leases_instance_idx on leases (instance)`.execute(db);
    await sql`
      create table health_replicas (
        instance text collate "C" not null,
        agent_endpoint text not null,
        internal_address text not null,
        query_endpoint text not null,
        advertised_at timestamptz(3) not null default now(),
        constraint health_replicas_pkey primary key (instance)
      )`.execute(db);
    await sql`
      comment on table health_replicas is
        'Where each health replica can be reached. Written by itself; counts only while its lease is held.'
    `.execute(db);
  },
};

function createSessions() {
  return sql`
    create table node_sessions (
      node_id text collate "C" not null,
      node_type text not null,
      epoch integer not null default 0,
      replica_id text collate "C",
      boot_id text,
      machine_fingerprint text,
      address text,
      opened_at timestamptz(3),
      connection text not null,
      connection_since timestamptz(3) not null default now(),
      connection_reason text not null,
      connection_message text not null,
      connection_actor text not null,
      health text not null,
      health_since timestamptz(3) not null default now(),
      health_reason text not null,
      health_message text not null,
      health_actor text not null,
      marked boolean not null default false,
      status text not null generated always as (
        case
          when node_type = 'ORCHESTRATOR' then connection
          when marked then 'UNHEALTHY'
          else health
        end
      ) stored,
      constraint node_sessions_pkey primary key (node_id),
      constraint node_sessions_node_fkey foreign key (node_id) references nodes (id) on delete cascade,
      constraint node_sessions_type_known check (node_type in ('ORCHESTRATOR', 'COMPUTE')),
      constraint node_sessions_connection_known check (connection in ('CONNECTED', 'DISCONNECTED')),
      constraint node_sessions_health_known check (health in ('HEALTHY', 'UNHEALTHY', 'UNKNOWN'))
    ) with (fillfactor = 80)`;
}
