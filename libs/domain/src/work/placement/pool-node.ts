import type { Grant } from "../execution.ts";
import type { WorkNode } from "../work-node.ts";
import type { Amounts } from "./amount-rows.ts";
import type { FreeNode } from "./free-order.ts";

/** Executions that hold resources of one node at most. */
export const MOST_NODE_EXECUTIONS = 1_000;

/** A node of the pool, with what is taken of it. */
export interface PoolNode extends FreeNode {
  node: WorkNode;
  /** Sums of the grants that hold resources. */
  readonly taken: Taken;
  /** Where the search for dynamic ports goes on, so that a port that was returned is not given away again at once. */
  nextPort: number;
}

export interface Taken {
  millicores: number;
  memoryBytes: number;
  diskBytes: number;
  executions: number;
  /** How many hold each port and GPU: more than one only where the record says so. */
  readonly ports: Map<number, number>;
  readonly gpus: Map<string, number>;
}

/** A node of which nothing is taken. */
export function poolNode(node: WorkNode): PoolNode {
  const taken: Taken = {
    ...{ millicores: 0, memoryBytes: 0, diskBytes: 0, executions: 0 },
    ports: new Map(),
    gpus: new Map(),
  };
  return { id: node.id, free: freeOf(node, taken), node, taken, nextPort: node.capacity?.portMin ?? 0 };
}

/** What is left of a node. One that has as many executions as it may has no cores left: nothing fits there. */
export function freeOf({ capacity, gpus, areGpusKnown }: WorkNode, taken: Taken): Amounts {
  const isFull = capacity === null || taken.executions >= MOST_NODE_EXECUTIONS;
  return {
    millicores: isFull ? -1 : capacity.millicores - taken.millicores,
    memoryBytes: (capacity?.memoryBytes ?? 0) - taken.memoryBytes,
    diskBytes: (capacity?.diskBytes ?? 0) - taken.diskBytes,
    gpus: areGpusKnown ? gpus.filter(({ uuid }) => !taken.gpus.has(uuid)).length : 0,
  };
}

/** Count a grant. */
export function addGrant(taken: Taken, grant: Grant): void {
  taken.millicores += grant.millicores;
  taken.memoryBytes += grant.memoryBytes;
  taken.diskBytes += grant.diskBytes;
  taken.executions += 1;
  for (const port of Object.values(grant.ports)) taken.ports.set(port, (taken.ports.get(port) ?? 0) + 1);
  for (const uuid of grant.gpuUuids) taken.gpus.set(uuid, (taken.gpus.get(uuid) ?? 0) + 1);
}

/** Count a grant no longer. */
export function subtractGrant(taken: Taken, grant: Grant): void {
  taken.millicores -= grant.millicores;
  taken.memoryBytes -= grant.memoryBytes;
  taken.diskBytes -= grant.diskBytes;
  taken.executions -= 1;
  for (const port of Object.values(grant.ports)) subtractOne(taken.ports, port);
  for (const uuid of grant.gpuUuids) subtractOne(taken.gpus, uuid);
}

function subtractOne<Key>(counts: Map<Key, number>, key: Key): void {
  const left = (counts.get(key) ?? 0) - 1;
  if (left > 0) counts.set(key, left);
  else counts.delete(key);
}
