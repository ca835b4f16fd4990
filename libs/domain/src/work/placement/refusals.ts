import { UNKNOWN_REASONS } from "../../conditions/hardware.ts";
import { type Amounts, fits } from "./amount-rows.ts";
import { chooseGrant } from "./choose-grant.ts";
import { mismatches, type PlacementReason } from "./node-class.ts";
import type { NodeClass, NodePool } from "./node-pool.ts";
import type { PlacementRequest } from "./placement-request.ts";
import { isMatch } from "./placement-search.ts";
import { MOST_NODE_EXECUTIONS, type PoolNode } from "./pool-node.ts";

/** How many nodes a reason excludes. */
export interface RefusalCount {
  readonly reason: PlacementReason;
  readonly nodes: number;
}

/** Why nodes cannot run an execution. */
export interface Refusals {
  /** Total number of nodes. */
  readonly nodes: number;
  /** Sorted by frequency, the most frequent reason first. A node counts for each of its reasons. */
  readonly counts: readonly RefusalCount[];
}

const AMOUNT_REASONS: Readonly<Record<keyof Amounts, PlacementReason>> = {
  millicores: "INSUFFICIENT_CORES",
  memoryBytes: "INSUFFICIENT_MEMORY",
  diskBytes: "INSUFFICIENT_DISK",
  gpus: "INSUFFICIENT_GPUS",
};

/**
 * Count why nodes cannot run one more execution. A class that does not match is counted as a whole. Nodes
 * are examined individually only in matching classes.
 *
 * @param counts the number of the job's executions that hold resources on each node.
 */
export function countRefusals(
  pool: NodePool,
  request: PlacementRequest,
  counts: ReadonlyMap<string, number>,
): Refusals {
  const found = new Map<PlacementReason, number>();
  const add = (reason: PlacementReason, nodes: number) => {
    if (nodes > 0) found.set(reason, (found.get(reason) ?? 0) + nodes);
  };
  const { nodeId } = request.spec.constraints;
  for (const of of pool.classes()) {
    const size = of.order.size;
    const isNamed = nodeId !== null && pool.classOf(nodeId) === of;
    if (nodeId !== null) add("NOT_THE_NAMED_NODE", isNamed ? size - 1 : size);
    const reasons = [...of.facts.obstacles, ...mismatches(of.facts, request)];
    for (const reason of reasons) add(reason, size);
    if (reasons.length === 0 && (nodeId === null || isNamed)) countInClass(of, request, counts, add);
  }
  const sorted = [...found].map(([reason, nodes]) => ({ reason, nodes }));
  sorted.sort((one, other) => other.nodes - one.nodes || (one.reason < other.reason ? -1 : 1));
  return { nodes: pool.size, counts: sorted };
}

/** Whether any node could run an execution if nothing else ran on the node. */
export function couldFit(pool: NodePool, request: PlacementRequest): boolean {
  const { nodeId } = request.spec.constraints;
  for (const of of pool.classes()) {
    if (!isMatch(of, request)) continue;
    if (nodeId !== null) {
      const node = pool.classOf(nodeId) === of ? pool.get(nodeId) : undefined;
      if (node !== undefined && hasCapacity(node, request.amounts)) return true;
    } else if (isAny(of.order.nodes(), (node) => hasCapacity(node, request.amounts))) {
      return true;
    }
  }
  return false;
}

/** The ids of all nodes that match and currently take work, even if they have no room. */
export function matchingNodes(pool: NodePool, request: PlacementRequest): readonly string[] {
  const { nodeId } = request.spec.constraints;
  const found: string[] = [];
  for (const of of pool.classes()) {
    if (!isMatch(of, request)) continue;
    for (const { id } of of.order.nodes()) if (nodeId === null || nodeId === id) found.push(id);
  }
  return found.sort();
}

function countInClass(
  of: NodeClass,
  request: PlacementRequest,
  counts: ReadonlyMap<string, number>,
  add: (reason: PlacementReason, nodes: number) => void,
): void {
  const short = of.order.countShort(request.amounts);
  for (const amount of ["millicores", "memoryBytes", "diskBytes", "gpus"] as const) {
    const isUnknown = amount === "gpus" && of.facts.unknown.includes("gpus");
    add(isUnknown ? UNKNOWN_REASONS.gpus : AMOUNT_REASONS[amount], short[amount]);
  }
  const { maxPerNode } = request.spec;
  for (const node of of.order.nodes()) {
    const { taken } = node;
    if (taken.executions >= MOST_NODE_EXECUTIONS) add("TOO_MANY_EXECUTIONS", 1);
    if (maxPerNode > 0 && (counts.get(node.id) ?? 0) >= maxPerNode) add("MAX_PER_NODE_REACHED", 1);
    const isTaken = request.isPicky && fits(node.free, request.amounts) && !chooseGrant(node, request);
    if (isTaken) add("PORT_OR_GPU_TAKEN", 1);
  }
}

function hasCapacity({ node }: PoolNode, need: Amounts): boolean {
  const { capacity, gpus } = node;
  return (
    capacity !== null &&
    fits(
      {
        millicores: capacity.millicores,
        memoryBytes: capacity.memoryBytes,
        diskBytes: capacity.diskBytes,
        gpus: gpus.length,
      },
      need,
    )
  );
}

function isAny(nodes: Iterable<PoolNode>, holds: (node: PoolNode) => boolean): boolean {
  for (const node of nodes) if (holds(node)) return true;
  return false;
}
