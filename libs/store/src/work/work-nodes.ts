import type { NodeRecord, Reaction } from "@rollcall/domain";
import { sql } from "kysely";
import type { Db, ReservedStore } from "../database/store.ts";
import { readNodes } from "../nodes/read-nodes.ts";

/** What executions have been given of a node. */
export interface AllocationRecord {
  readonly millicores: number;
  readonly memoryBytes: number;
  readonly diskBytes: number;
  readonly gpuUuids: readonly string[];
  readonly ports: readonly number[];
  readonly executions: number;
}

/** A node as the scheduler has to know it. */
export interface WorkNode {
  readonly node: NodeRecord;
  readonly reaction: Reaction | null;
  readonly allocated: AllocationRecord;
}

const NOTHING: AllocationRecord = {
  ...{ millicores: 0, memoryBytes: 0, diskBytes: 0, executions: 0 },
  ...{ gpuUuids: [], ports: [] },
};

/** Have a row of allocations for each of these nodes: placing takes only from what is there. */
export async function ensureAllocations(store: ReservedStore, nodeIds: readonly string[]): Promise<void> {
  if (nodeIds.length === 0) return;
  await sql`
    insert into node_allocations (node_id) select unnest(${nodeIds}::text[]) as id order by id
    on conflict on constraint node_allocations_pkey do nothing`.execute(store.db);
}

/** Ids of compute nodes, by id, after one. */
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

/** Read nodes with their allocations in pieces of a bounded size; those that are not there are left out. */
export async function* readWorkNodes(db: Db, ids: readonly string[]): AsyncGenerator<readonly WorkNode[]> {
  for await (const nodes of readNodes(db, ids)) {
    const allocations = await readAllocations(
      db,
      nodes.map(({ id }) => id),
    );
    yield nodes.map((node) => ({
      node,
      reaction: node.loss.reaction,
      allocated: allocations.get(node.id) ?? NOTHING,
    }));
  }
}

/** What executions have been given of nodes, by node; one that never had any is left out. */
export async function readAllocations(
  db: Db,
  nodeIds: readonly string[],
): Promise<ReadonlyMap<string, AllocationRecord>> {
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
