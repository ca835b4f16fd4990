import type { Json } from "../events/events.ts";
import type { Thresholds } from "../policy/policy.ts";
import type { Health, HealthState, Membership } from "../states.ts";

/**
 * One health replica's counts for one group: approved compute nodes that it considers HEALTHY, and how many of them
 * are nearly UNHEALTHY.
 */
export interface GroupSum {
  readonly healthy: number;
  /** How many of these nodes have been silent for more than half of their threshold. */
  readonly silent: number;
}

/** The counts that one health replica reports with each renewal of its lease. */
export interface BrakeSums {
  /** Increases by one with each report. */
  readonly sequence: number;
  /** The counts, keyed by group, including `BRAKE_CLUSTER`. */
  readonly groups: ReadonlyMap<string, GroupSum>;
}

/** A node as its replica sees it. */
export interface CountedNode {
  /** Null if unknown. */
  readonly membership: Pick<Membership, "state"> | null;
  /** The health that the replica decided. */
  readonly health: Pick<Health, "reason">;
  /** As last stored. */
  readonly writtenHealth: Pick<Health, "state">;
}

/** The detector's data about a node. */
export interface CountedTimes {
  readonly health: HealthState;
  readonly lastReceivedMs: number;
  readonly thresholds: Pick<Thresholds, "unhealthyAfterMs">;
}

/**
 * How a node counts for the brake; null if it does not count. A node counts as "silent" if it is HEALTHY but nearly
 * lost. A node that was declared lost also counts as "silent" until the store shows the loss: otherwise it would be
 * counted neither as silent nor as lost.
 */
export function countedAs(node: CountedNode, times: CountedTimes, nowMs: number): "healthy" | "silent" | null {
  if (node.membership?.state !== "APPROVED") return null;
  if (times.health === "HEALTHY") {
    const isNearlyLost = (nowMs - times.lastReceivedMs) * 2 > times.thresholds.unhealthyAfterMs;
    return isNearlyLost ? "silent" : "healthy";
  }
  const isDeclaredOnly = node.writtenHealth.state === "HEALTHY" && node.health.reason === "HEARTBEATS_MISSED";
  return isDeclaredOnly ? "silent" : null;
}

/** Encode the sums for the store. */
export function brakeSumsToJson({ sequence, groups }: BrakeSums): Json {
  const counts = [...groups].map(([group, { healthy, silent }]) => [group, [healthy, silent]]);
  return { sequence, groups: Object.fromEntries(counts) };
}

/** Decode the result of `brakeSumsToJson()`. Returns null for anything else, such as the report of another release. */
export function brakeSumsFromJson(json: Json): BrakeSums | null {
  if (json === null || typeof json !== "object" || !("sequence" in json)) return null;
  const { sequence, groups } = json;
  if (typeof sequence !== "number" || groups === null || typeof groups !== "object") return null;
  const sums = new Map<string, GroupSum>();
  for (const [group, counts] of Object.entries(groups)) {
    if (!Array.isArray(counts)) return null;
    const [healthy, silent] = counts;
    if (typeof healthy !== "number" || typeof silent !== "number") return null;
    sums.set(group, { healthy, silent });
  }
  return { sequence, groups: sums };
}

/** Add up the counts of all replicas for each group. */
export function addBrakeSums(all: readonly BrakeSums[]): ReadonlyMap<string, GroupSum> {
  const totals = new Map<string, GroupSum>();
  for (const { groups } of all) {
    for (const [group, { healthy, silent }] of groups) {
      const total = totals.get(group) ?? { healthy: 0, silent: 0 };
      totals.set(group, { healthy: total.healthy + healthy, silent: total.silent + silent });
    }
  }
  return totals;
}
