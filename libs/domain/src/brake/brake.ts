/** The brake's group name for the whole cluster. Names of other groups contain a "=". */
export const BRAKE_CLUSTER = "cluster";

/** How many reactions the brake releases automatically: all, 10 % of the group's size per minute, or none. */
export type BrakeMode = "NORMAL" | "PARTIAL" | "FULL";

/** A brake's state: its mode, or FROZEN while an operator has frozen it. */
export type BrakeState = BrakeMode | "FROZEN";

/** The counts of a group in one scan. Only approved compute nodes count. */
export interface BrakeCounts {
  /** Nodes that were HEALTHY when the window began. */
  readonly size: number;
  /** Nodes that count as HEALTHY but have been silent for more than half of their threshold. */
  readonly silent: number;
  /** Nodes that were lost since the window began, and are still lost. */
  readonly lost: number;
  /**
   * Lost nodes that may also be counted as silent, because some replica's latest report is older than their loss.
   */
  readonly unsettled: number;
}

/** The size of the largest group without a brake: in a group of two, losing one node is losing half of the group. */
const SMALL_GROUP = 2;
/** A storm begins when more than this percentage of a group's nodes are silent or lost. */
const STORM_PERCENT = 55;

/** The group name of the nodes that have this value of the configured label. */
export function brakeGroupName(label: string, value: string): string {
  return `${label}=${value}`;
}

/**
 * Decide a group's mode, on the safe side: a node that may be both silent and lost counts once when the brake would
 * be set, and twice when it would be lifted.
 */
export function decideBrake(before: BrakeMode, counts: BrakeCounts): BrakeMode {
  const { size } = counts;
  if (size <= SMALL_GROUP) return "NORMAL";
  const least = leastGone(counts);
  const most = mostGone(counts);
  if (least >= size || (before === "FULL" && most >= size)) return "FULL";
  if (isStorm(least, size)) return "PARTIAL";
  return before !== "NORMAL" && isStorm(most, size) ? "PARTIAL" : "NORMAL";
}

/**
 * The minimum number of nodes in a group, from the replicas' counts and the losses: the larger of two lower bounds.
 * Each bound counts a node that may be in both only once.
 */
export function countedSize(
  sum: { readonly healthy: number; readonly silent: number },
  losses: { readonly lost: number; readonly unsettled: number },
): number {
  const { healthy, silent } = sum;
  const { lost, unsettled } = losses;
  return Math.max(healthy + lost - Math.min(unsettled, lost), healthy - silent + lost);
}

/**
 * Combine the counts of a group.
 *
 * @param knownSize the size of the group known from earlier scans; 0 for none. A larger current count replaces this
 *   size: in earlier scans, some nodes had not been scanned yet or were moving between two replicas.
 */
export function brakeCounts(
  knownSize: number,
  { healthy, silent }: { readonly healthy: number; readonly silent: number } = { healthy: 0, silent: 0 },
  { lost, unsettled: all }: { readonly lost: number; readonly unsettled: number } = { lost: 0, unsettled: 0 },
): BrakeCounts {
  const unsettled = Math.min(all, lost);
  const size = Math.max(knownSize, countedSize({ healthy, silent }, { lost, unsettled }));
  return { size, silent: Math.min(silent, healthy), lost, unsettled };
}

/**
 * The counts to show to people: no node counts as both silent and lost, and the sum of both does not exceed the
 * size.
 */
export function toldCounts({ size, silent, lost }: BrakeCounts): Omit<BrakeCounts, "unsettled"> {
  const all = Math.max(size, lost);
  return { size: all, lost, silent: Math.max(0, Math.min(silent, all - lost)) };
}

/** Whether a group is certainly not in a storm. If so, its reactions need not wait until the counts are settled. */
export function isCalm(counts: BrakeCounts): boolean {
  return counts.size <= SMALL_GROUP || !isStorm(mostGone(counts), counts.size);
}

/** The minimum number of silent or lost nodes in a group. */
function leastGone({ silent, lost, unsettled }: BrakeCounts): number {
  return lost + Math.max(0, silent - unsettled);
}

function mostGone({ silent, lost }: BrakeCounts): number {
  return lost + silent;
}

function isStorm(gone: number, size: number): boolean {
  return gone * 100 > STORM_PERCENT * size;
}
