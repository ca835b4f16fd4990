import { sql } from "kysely";
import type { Migration } from "kysely/migration";

/** The objects that were applied as declared state, with their owners and fields. */
export const declaredState: Migration = {
  async up(db) {
    await sql`
      create table declared_objects (
        name text collate "C" not null,
        owner text collate "C" not null,
        fields jsonb not null,
        node_id text collate "C",
        applied_by text not null,
        applied_at timestamptz(3) not null default now(),
        constraint declared_objects_pkey primary key (name),
        constraint declared_objects_node_fkey foreign key (node_id) references nodes (id) on delete cascade,
        constraint declared_objects_fields_is_object check (jsonb_typeof(fields) = 'object')
      )`.execute(db);
    await sql`
      comment on table declared_objects is
        'Objects that were applied as declared state, with their owner and content. Written by admin; objects about a node are deleted with it.'
    `.execute(db);
    await sql`create index declared_objects_node_idx on declared_objects (node_id) where node_id is not null`.execute(
      db,
    );
  },
};
