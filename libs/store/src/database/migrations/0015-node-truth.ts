import { sql } from "kysely";
import type { Migration } from "kysely/migration";

/** The recent outages of nodes, and whether their hardware matches the approved hardware. */
export const nodeTruth: Migration = {
  async up(db) {
    await sql`
      alter table nodes
        add column approved_hardware jsonb,
        add column missing_hardware jsonb not null default '[]',
        add constraint nodes_missing_hardware_is_list check (jsonb_typeof(missing_hardware) = 'array')
    `.execute(db);
    await sql`
      comment on column nodes.approved_hardware is
        'The hardware that the node reported when it was approved, or that an operator accepted; null if it had reported none.'
    `.execute(db);
    await sql`
      alter table node_sessions
        add column outages jsonb not null default '[]',
        add column flapping_since timestamptz(3),
        add column gpu_troubles jsonb not null default '[]',
        add column rebooted_at timestamptz(3),
        add constraint node_sessions_outages_is_list check (jsonb_typeof(outages) = 'array'),
        add constraint node_sessions_gpu_troubles_is_list check (jsonb_typeof(gpu_troubles) = 'array')
    `.execute(db);
    await sql`
      comment on column node_sessions.outages is
        'Recent outages of the node, oldest first, to detect flapping. Planned restarts are not included.'
    `.execute(db);
    await sql`
      create index node_sessions_troubled_idx on node_sessions (replica_id)
      where flapping_since is not null or gpu_troubles <> '[]' or rebooted_at is not null
    `.execute(db);
    await sql`
      create index nodes_troubled_idx on nodes (id)
      where missing_hardware <> '[]' or holds @> '[{"kind": "FLAPPING"}]' or holds @> '[{"kind": "HARDWARE"}]'
    `.execute(db);
  },
};
