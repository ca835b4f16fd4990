import { sql } from "kysely";
import type { Migration } from "kysely/migration";

/** The observed state of nodes, and the replicas that observe them. */
export const sessions: Migration = {
  async up(db) {
    await createSessions().execute(db);
    await sql`
      comment on table node_sessions is
        'Connection, detected health and session of each node. Written by health replicas as compare-and-set on (replica_id, epoch); marked is written by admin.'
    `.execute(db);
    await sql`create index node_sessions_status_idx on node_sessions (status, node_id)`.execute(db);
    await sql`
      create index node_sessions_replica_idx on node_sessions (replica_id, node_id)
      where replica_id is not null`.execute(db);
    // Leave free space on each page, so that Postgres can rewrite rows every two seconds without updating indexes.
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
        'Which processes are alive, and which one leads. Each holder increments its counter; an observer decides only by its own clock that a counter has stopped.'
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
        'Where each health replica can be reached. Written by the replica; valid only while it has its lease.'
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
