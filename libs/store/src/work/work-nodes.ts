import { sql } from "kysely";
import type { Db, ReservedStore } from "../database/store.ts";

/** The resources allocated to executions on a node. */
export interface AllocationRow {
  readonly millicores: number;
  readonly memoryBytes: number;
  readonly diskBytes: number;
  readonly gpuUuids: readonly string[];
  readonly ports: readonly number[];
  readonly executions: number;
}

/** Create the missing allocation rows of these nodes, because a placement only updates existing rows. */
export async function ensureAllocations({ db }: ReservedStore, nodeIds: readonly string[]): Promise<void> {
  if (nodeIds.length === 0) return;
  await sql`
    insert into node_allocations (node_id)
    select wanted.id from unnest(${nodeIds}::text[]) as wanted (id)
    where not exists (select from node_allocations as a where a.node_id = wanted.id)
    order by wanted.id
    on conflict on constraint node_allocations_pkey do nothing`.execute(db);
}

/** List the ids of compute nodes, in order, after the given id. */
export async function readComputeNodeIds(
  db: Db,
  { after, limit }: { readonly after: string; readonly limit: number },
): Promise<readonly string[]> {
  const rows = await db
    .selectFrom("nodes")
    .select("id")
    .where("type", "=", "COMPUTE")
    .where("id", ">", after)
    .orderBy("id")
    .limit(limit)
    .execute();
  return rows.map(({ id }) => id);
}

/** Read the resources that are allocated on nodes, keyed by node. Nodes that never had an execution are left out. */
export async function readAllocations(db: Db, nodeIds: readonly string[]): Promise<ReadonlyMap<string, AllocationRow>> {
  if (nodeIds.length === 0) return new Map();
  const rows = await db.selectFrom("node_allocations").selectAll().where("node_id", "in", nodeIds).execute();
  return new Map(
    rows.map((row) => [
      row.node_id,
      {
        millicores: Number(row.millicores),
        memoryBytes: Number(row.memory_bytes),
        diskBytes: Number(row.disk_bytes),
        gpuUuids: row.gpu_uuids,
        ports: row.ports,
        executions: row.executions,
      },
    ]),
  );
}
