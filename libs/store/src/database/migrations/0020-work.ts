import { sql } from "kysely";
import type { Migration } from "kysely/migration";

/** Jobs, their executions on nodes, the reports of nodes about executions, and drains. */
export const work: Migration = {
  async up(db) {
    // Limit the wait for locks, because the tables that the new ones reference are in use: see migrateToLatest().
    await sql`set local lock_timeout = '2s'`.execute(db);
    await sql`create sequence work_generations as bigint`.execute(db);
    await sql`
      comment on sequence work_generations is
        'Numbers the changes to the work of nodes. All nodes share one sequence, so that the numbers of a node that was deleted and joins again keep increasing.'
    `.execute(db);
    for (const table of TABLES) await table.execute(db);
    for (const comment of COMMENTS) await comment.execute(db);
    for (const index of INDEXES) await index.execute(db);
  },
};

const TABLES = [
  sql`
    create table jobs (
      name text collate "C" not null,
      type text not null,
      version integer not null,
      count integer not null,
      spec jsonb not null,
      spec_digest bytea not null,
      actor text not null,
      submitted_at timestamptz(3) not null default now(),
      run integer not null default 1,
      state text not null default 'ACTIVE',
      message text not null default '',
      placed boolean not null default false,
      halted text,
      edition integer not null default 1,
      created_at timestamptz(3) not null default now(),
      updated_at timestamptz(3) not null default now(),
      constraint jobs_pkey primary key (name),
      constraint jobs_type_known check (type in ('batch', 'service', 'ops', 'daemon')),
      constraint jobs_state_known check (state in ('ACTIVE', 'STOPPED', 'COMPLETED', 'FAILED')),
      constraint jobs_spec_is_object check (jsonb_typeof(spec) = 'object')
    ) with (fillfactor = 80)`,
  sql`
    create table job_versions (
      job text collate "C" not null,
      version integer not null,
      spec jsonb not null,
      spec_digest bytea not null,
      actor text not null,
      reason text not null,
      created_at timestamptz(3) not null default now(),
      constraint job_versions_pkey primary key (job, version),
      constraint job_versions_job_fkey foreign key (job) references jobs (name) on delete cascade
    )`,
  sql`
    create table execution_specs (
      digest bytea not null,
      spec bytea not null,
      created_at timestamptz(3) not null default now(),
      constraint execution_specs_pkey primary key (digest)
    )`,
  sql`
    create table executions (
      id text collate "C" not null,
      job text collate "C" not null,
      version integer not null,
      run integer not null default 1,
      index integer not null,
      node_id text collate "C" not null,
      desired text not null,
      generation bigint not null,
      spec_digest bytea not null,
      ports jsonb not null default '{}',
      gpu_uuids text[] not null default '{}',
      millicores bigint not null,
      memory_bytes bigint not null,
      disk_bytes bigint not null,
      holds boolean not null default true,
      previous text collate "C",
      replaced_by text collate "C",
      attempt integer not null default 0,
      state text not null default 'LIVE',
      reason text not null default '',
      message text not null default '',
      order_kind text,
      order_actor text,
      order_message text,
      created_at timestamptz(3) not null default now(),
      lost_at timestamptz(3),
      ended_at timestamptz(3),
      changed xid8 not null default pg_current_xact_id(),
      constraint executions_pkey primary key (id),
      constraint executions_desired_known check (desired in ('RUN', 'STOP', 'FORGET')),
      constraint executions_state_known check (
        state in ('LIVE', 'LOST', 'ORPHANED', 'COMPLETED', 'FAILED', 'STOPPED', 'KILLED_OOM', 'REPLACED')
      ),
      constraint executions_order_known check (order_kind in ('STOP', 'ADOPT')),
      constraint executions_order_is_whole check (num_nulls(order_kind, order_actor, order_message) in (0, 3))
    ) with (fillfactor = 70)`,
  sql`
    create table execution_observations (
      execution_id text collate "C" not null,
      node_id text collate "C" not null,
      epoch bigint not null,
      report bigint not null,
      observed text not null,
      started_at timestamptz(3),
      ended_at timestamptz(3),
      end_reason text,
      exit_code integer,
      signal text,
      message text not null default '',
      job text not null default '',
      spec_digest bytea,
      missing integer not null default 0,
      ready_at timestamptz(3),
      observed_at timestamptz(3) not null default now(),
      changed xid8 not null default pg_current_xact_id(),
      constraint execution_observations_pkey primary key (execution_id),
      constraint execution_observations_observed_known check (
        observed in ('ABSENT', 'STARTING', 'RUNNING', 'READY', 'ENDED')
      )
    ) with (fillfactor = 70)`,
  sql`
    create table node_allocations (
      node_id text collate "C" not null,
      generation bigint not null default 0,
      millicores bigint not null default 0,
      memory_bytes bigint not null default 0,
      disk_bytes bigint not null default 0,
      gpu_uuids text[] not null default '{}',
      ports integer[] not null default '{}',
      executions integer not null default 0,
      changed xid8 not null default pg_current_xact_id(),
      constraint node_allocations_pkey primary key (node_id)
    ) with (fillfactor = 50)`,
  sql`
    create table drains (
      node_id text collate "C" not null,
      deadline timestamptz(3),
      force boolean not null default false,
      ignore_daemons boolean not null default false,
      keep_ineligible boolean not null default false,
      reason text not null default '',
      actor text not null,
      started_at timestamptz(3) not null default now(),
      drained_at timestamptz(3),
      constraint drains_pkey primary key (node_id),
      constraint drains_node_fkey foreign key (node_id) references nodes (id) on delete cascade
    )`,
];

const COMMENTS = [
  sql`
    comment on table jobs is
      'The jobs that should run. Spec, count, run and STOPPED are written by the methods of JobService; the other states, message, placed and halted by the leading scheduler.'`,
  sql`comment on table job_versions is 'Every submitted version of each job. Written by JobService.'`,
  sql`
    comment on table execution_specs is
      'Encoded specs of executions, by SHA-256. Written by JobService, deleted by the leading scheduler.'`,
  sql`
    comment on table executions is
      'Executions of jobs on nodes: their desired state, their allocated resources, and how they ended. Written by the leading scheduler, except order_..., which JobService writes. For display, LIVE is refined with execution_observations.'`,
  sql`
    comment on table execution_observations is
      'Reports of nodes about executions, including unknown ones. Written by health, fenced by (epoch, report). missing counts consecutive complete reports without the execution.'`,
  sql`
    comment on table node_allocations is
      'The resources of each node that are allocated to executions, and the generation of its desired work. Written by the leading scheduler. Not checked against the node''s resources, since those can shrink.'`,
  sql`
    comment on table drains is
      'Nodes whose work must move or end, or has done so. Written by admin, except drained_at, which the leading scheduler writes.'`,
];

const INDEXES = [
  sql`create index jobs_active_idx on jobs (name) where state = 'ACTIVE'`,
  sql`create index executions_job_idx on executions (job, id)`,
  sql`create index executions_node_idx on executions (node_id, generation)`,
  sql`create index executions_live_idx on executions (id) where holds or state in ('LIVE', 'LOST', 'ORPHANED')`,
  sql`create index executions_ended_idx on executions (ended_at) where ended_at is not null`,
  sql`create index executions_changed_idx on executions (changed)`,
  sql`create index execution_observations_node_idx on execution_observations (node_id)`,
  sql`create index execution_observations_changed_idx on execution_observations (changed)`,
  sql`create index node_allocations_changed_idx on node_allocations (changed)`,
];
