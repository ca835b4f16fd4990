import type { Grant } from "../execution.ts";
import type { WorkNode } from "../work-node.ts";
import type { Amounts } from "./amount-rows.ts";
import type { FreeNode } from "./free-order.ts";

/** Maximum number of executions that hold resources on one node. */
export const MOST_NODE_EXECUTIONS = 1_000;

/** A node in the pool, with its granted resources. */
export interface PoolNode extends FreeNode {
  node: WorkNode;
  /** The total of all grants on the node that hold resources. */
  readonly taken: Taken;
  /**
   * The port at which the search for dynamic ports continues, so that a released port is not granted again
   * immediately.
   */
  nextPort: number;
}

export interface Taken {
  millicores: number;
  memoryBytes: number;
  diskBytes: number;
  executions: number;
  /**
   * The number of executions that hold each port or GPU. It exceeds one only if the store has granted a port or a GPU
   * twice.
   */
  readonly ports: Map<number, number>;
  readonly gpus: Map<string, number>;
}

/** Create a node without grants. */
export function poolNode(node: WorkNode): PoolNode {
  const taken: Taken = {
    ...{ millicores: 0, memoryBytes: 0, diskBytes: 0, executions: 0 },
    ports: new Map(),
    gpus: new Map(),
  };
  return { id: node.id, free: freeOf(node, taken), node, taken, nextPort: node.capacity?.portMin ?? 0 };
}

/**
 * The free resources of a node. A node with the maximum number of executions has less than 0 cores, so that
 * nothing fits.
 */
export function freeOf({ capacity, gpus, unknown }: WorkNode, taken: Taken): Amounts {
  const isFull = capacity === null || taken.executions >= MOST_NODE_EXECUTIONS;
  return {
    millicores: isFull ? -1 : capacity.millicores - taken.millicores,
    memoryBytes: (capacity?.memoryBytes ?? 0) - taken.memoryBytes,
    diskBytes: (capacity?.diskBytes ?? 0) - taken.diskBytes,
    gpus: unknown.includes("gpus") ? 0 : gpus.filter(({ uuid }) => !taken.gpus.has(uuid)).length,
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

/** Subtract a grant. */
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
