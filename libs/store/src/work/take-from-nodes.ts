import type { Execution } from "@rollcall/domain";
import { sql } from "kysely";
import { rowsFrom } from "../database/batches.ts";
import { PREPARED } from "../database/pool.ts";
import type { Tx } from "../database/store.ts";
import { KNOWS_ESSENTIALS } from "../nodes/node-rows.ts";

/** For each node that could take its executions, the new generation of its work. */
export type NodeGenerations = ReadonlyMap<string, bigint>;

/** Maximum number of executions on a node. */
export const MOST_EXECUTIONS_OF_NODE = 1_000;

/**
 * Allocate executions' resources on their nodes. A node that cannot take work at the moment, or has too few free
 * resources, is missing from the result. The caller must refuse all executions of that node.
 *
 * The rows of the nodes are locked until the transaction ends, so that nothing is placed on a node after a cordon or
 * a loss was written. Because transactions lock rows in different orders, this does not wait for rows that another
 * transaction is writing: those nodes are missing from the result too.
 */
export async function takeFromNodes(tx: Tx, executions: readonly Execution[]): Promise<NodeGenerations> {
  const { rows } = await sql<{ readonly id: string; readonly generation: bigint }>`${PREPARED}
    with wanted as materialized (select * from ${rowsFrom(sumByNode(executions), COLUMNS)} as i),
    able as materialized (
      select n.id,
        coalesce((n.info #>> '{work,millicores}')::bigint, 0) as millicores,
        coalesce((n.info #>> '{work,memoryBytes}')::bigint, 0) as memory_bytes,
        coalesce((n.info #>> '{work,diskBytes}')::bigint, 0) as disk_bytes
      from wanted as w
      join nodes as n on n.id = w."nodeId"
      join node_sessions as s on s.node_id = n.id
      where n.type = 'COMPUTE' and n.membership = 'APPROVED' and n.scheduling = 'ELIGIBLE'
        and s.health = 'HEALTHY' and not s.marked and ${KNOWS_ESSENTIALS}
      for share of n, s skip locked
    )
    update node_allocations as a set
      generation = nextval('work_generations'),
      millicores = a.millicores + w.millicores,
      memory_bytes = a.memory_bytes + w."memoryBytes",
      disk_bytes = a.disk_bytes + w."diskBytes",
      gpu_uuids = a.gpu_uuids || w."gpuUuids",
      ports = a.ports || w.ports,
      executions = a.executions + w.executions,
      changed = pg_current_xact_id()
    from wanted as w
    join able as n on n.id = w."nodeId"
    where a.node_id = w."nodeId"
      and (w.millicores = 0 or a.millicores + w.millicores <= n.millicores)
      and (w."memoryBytes" = 0 or a.memory_bytes + w."memoryBytes" <= n.memory_bytes)
      and (w."diskBytes" = 0 or a.disk_bytes + w."diskBytes" <= n.disk_bytes)
      and a.executions + w.executions <= ${MOST_EXECUTIONS_OF_NODE}
      and not a.gpu_uuids && w."gpuUuids"
      and not a.ports && w.ports
    returning a.node_id as id, a.generation`.execute(tx);
  return new Map(rows.map(({ id, generation }) => [id, generation]));
}

const COLUMNS = sql`
  "nodeId" text, millicores bigint, "memoryBytes" bigint, "diskBytes" bigint, executions integer, "gpuUuids" text[],
  ports integer[]`;

interface Taking {
  readonly nodeId: string;
  millicores: number;
  memoryBytes: number;
  diskBytes: number;
  executions: number;
  readonly gpuUuids: string[];
  readonly ports: number[];
}

function sumByNode(executions: readonly Execution[]): readonly Taking[] {
  const takings = new Map<string, Taking>();
  for (const { nodeId, grant } of executions) {
    const taking = takings.get(nodeId) ?? {
      ...{ nodeId, millicores: 0, memoryBytes: 0, diskBytes: 0, executions: 0, gpuUuids: [], ports: [] },
    };
    takings.set(nodeId, taking);
    taking.millicores += grant.millicores;
    taking.memoryBytes += grant.memoryBytes;
    taking.diskBytes += grant.diskBytes;
    taking.executions += 1;
    taking.gpuUuids.push(...grant.gpuUuids);
    taking.ports.push(...Object.values(grant.ports));
  }
  return [...takings.values()];
}
