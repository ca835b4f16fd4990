/**
 * Unknown executions of one node that are recorded at a time: as many as a node is given. What a node runs beyond them
 * is recorded once some of these are adopted, stopped or have ended.
 */
export const MOST_UNKNOWN_OF_NODE = 1_000;

/** The same of all nodes together, beyond the first of each node. */
export const MOST_UNKNOWN = 10_000;

/** Recorded of each node even when the nodes together are at their limit: a few nodes cannot hide what others run. */
export const FIRST_UNKNOWN_OF_NODE = 50;

/** How many unknown executions are recorded already. */
export interface UnknownCounts {
  /** By approved node. What other nodes report is not recorded. */
  readonly ofNodes: ReadonlyMap<string, number>;
  readonly total: number;
}

/** An execution that a node reports and the store does not know. */
export interface UnknownReport {
  readonly id: string;
  readonly nodeId: string;
}

/** Which unknown executions are recorded, and the nodes of which some are not. */
export interface BoundedUnknown<Report extends UnknownReport> {
  readonly recorded: readonly Report[];
  readonly cutNodeIds: readonly string[];
}

/** Decide which unknown executions to record, in the order given. */
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
