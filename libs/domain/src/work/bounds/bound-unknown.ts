/**
 * Maximum number of unknown executions to record per node, which is the maximum number of executions on a node.
 * Further executions are recorded once some of the recorded ones have been adopted, stopped or have ended.
 */
export const MOST_UNKNOWN_OF_NODE = 1_000;

/**
 * Maximum number of unknown executions to record for all nodes, including those deleted within the last hour, and not
 * counting the first ones of each node.
 */
export const MOST_UNKNOWN = 10_000;

/**
 * How many unknown executions of each node are recorded even if the total limit is reached, so that a few nodes
 * cannot hide what other nodes run.
 */
export const FIRST_UNKNOWN_OF_NODE = 50;

/** How many unknown executions have been recorded already. */
export interface UnknownCounts {
  /** Counts keyed by approved node. Reports of nodes that are not approved are not recorded. */
  readonly ofNodes: ReadonlyMap<string, number>;
  /** The total of all approved nodes, and of nodes that were deleted within the last hour. */
  readonly total: number;
}

/** An execution that a node reports and the store does not know. */
export interface UnknownReport {
  readonly id: string;
  readonly nodeId: string;
}

/** The unknown executions to record, and the nodes with executions that are left out. */
export interface BoundedUnknown<Report extends UnknownReport> {
  readonly recorded: readonly Report[];
  readonly cutNodeIds: readonly string[];
}

/**
 * Decide which unknown executions to record. Executions that come earlier in the given order take precedence.
 */
export function boundUnknown<Report extends UnknownReport>(
  reports: readonly Report[],
  { ofNodes, total }: UnknownCounts,
): BoundedUnknown<Report> {
  const counts = new Map(ofNodes);
  const cut = new Set<string>();
  let sum = total;
  const recorded = reports.filter(({ nodeId }) => {
    const count = counts.get(nodeId);
    const limit = sum < MOST_UNKNOWN ? MOST_UNKNOWN_OF_NODE : FIRST_UNKNOWN_OF_NODE;
    if (count === undefined || count >= limit) {
      cut.add(nodeId);
      return false;
    }
    counts.set(nodeId, count + 1);
    sum += 1;
    return true;
  });
  return { recorded, cutNodeIds: [...cut] };
}
