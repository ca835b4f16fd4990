/** How the brake names the whole cluster as a group. Names of other groups contain a "=". */
export const BRAKE_CLUSTER = "cluster";

/** How many reactions the brake lets through by itself: all, 10 % of the group's size a minute, none. */
export type BrakeMode = "NORMAL" | "PARTIAL" | "FULL";

/** What a group's brake does: its mode, unless an operator has frozen it. */
export type BrakeState = BrakeMode | "FROZEN";

/** What is known of a group at one look. Approved compute nodes are counted. */
export interface BrakeCounts {
  /** Nodes that were HEALTHY when the window began. */
  readonly size: number;
  /** Nodes that count as HEALTHY and have been silent beyond half of their threshold. */
  readonly silent: number;
  /** Nodes that were lost since the window began, and still are. */
  readonly lost: number;
  /** Those of the lost that may be among the silent too, since sums of before their loss still count. */
  readonly unsettled: number;
}

/** No group of so few nodes is braked: one node's death would be half of it. */
const SMALL_GROUP = 2;
/** A greater share than this is a storm. */
const STORM_PERCENT = 55;

/** The name of a group of nodes that have the same value of the configured label. */
export function brakeGroupName(label: string, value: string): string {
  return `${label}=${value}`;
}

/**
 * Decide a group's mode. It is set by what is certain, and lifted by what is certain: a node that may be both silent
 * and lost counts once for setting and twice for lifting.
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
 * How many nodes a group has for certain, by what replicas count and what was lost: a node that may be among both
 * counts once, and either of the two ways to count it can only be short.
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
 * The counts of a group.
 *
 * @param knownSize the size that it is known to have had, 0 for none; it has more when more are counted: not every node
 *   was looked at then, and some have been between two replicas.
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
 * The counts as people see them: no node is both silent and lost, and their sum is at most the number of nodes there
 * are.
 */
export function toldCounts({ size, silent, lost }: BrakeCounts): Omit<BrakeCounts, "unsettled"> {
  const all = Math.max(size, lost);
  return { size: all, lost, silent: Math.max(0, Math.min(silent, all - lost)) };
}

/** Whether a group is no storm for certain, so that its reactions need not wait for a better look. */
export function isCalm(counts: BrakeCounts): boolean {
  return counts.size <= SMALL_GROUP || !isStorm(mostGone(counts), counts.size);
}

/** Nodes of a group that are silent or lost, as far as it is certain. */
function leastGone({ silent, lost, unsettled }: BrakeCounts): number {
  return lost + Math.max(0, silent - unsettled);
}

function mostGone({ silent, lost }: BrakeCounts): number {
  return lost + silent;
}

function isStorm(gone: number, size: number): boolean {
  return gone * 100 > STORM_PERCENT * size;
}
