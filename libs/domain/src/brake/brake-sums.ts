import type { Json } from "../events/events.ts";
import type { Thresholds } from "../policy/policy.ts";
import type { Health, HealthState, Membership } from "../states.ts";

/**
 * What one health replica counts of one group: approved compute nodes that it judges HEALTHY, and how many of those are
 * nearly not.
 */
export interface GroupSum {
  readonly healthy: number;
  /** Silent beyond half of their threshold. */
  readonly silent: number;
}

/** What one health replica reports with each renewal of its lease. */
export interface BrakeSums {
  /** Rises by one with each report. */
  readonly sequence: number;
  /** By group, `BRAKE_CLUSTER` among them. */
  readonly groups: ReadonlyMap<string, GroupSum>;
}

/** A node as the replica that holds it counts it. */
export interface CountedNode {
  /** Null while it is not known. */
  readonly membership: Pick<Membership, "state"> | null;
  /** As judged by the replica. */
  readonly health: Pick<Health, "reason">;
  /** As last written. */
  readonly writtenHealth: Pick<Health, "state">;
}

/** What the detector knows of a node. */
export interface CountedSilence {
  readonly health: HealthState;
  readonly lastReceivedMs: number;
  readonly thresholds: Pick<Thresholds, "unhealthyAfterMs">;
}

/**
 * How a node counts for the brake: "silent" when it is HEALTHY and nearly lost, or declared lost and not yet recorded,
 * since without it the node would be missing from both sums; null when it does not count.
 */
export function countedAs(node: CountedNode, silence: CountedSilence, nowMs: number): "healthy" | "silent" | null {
  if (node.membership?.state !== "APPROVED") return null;
  if (silence.health === "HEALTHY") {
    const isNearlyLost = (nowMs - silence.lastReceivedMs) * 2 > silence.thresholds.unhealthyAfterMs;
    return isNearlyLost ? "silent" : "healthy";
  }
  const isDeclaredOnly = node.writtenHealth.state === "HEALTHY" && node.health.reason === "HEARTBEATS_MISSED";
  return isDeclaredOnly ? "silent" : null;
}

/** The sums as the record keeps them. */
export function brakeSumsToJson({ sequence, groups }: BrakeSums): Json {
  const counts = [...groups].map(([group, { healthy, silent }]) => [group, [healthy, silent]]);
  return { sequence, groups: Object.fromEntries(counts) };
}

/** Read what `brakeSumsToJson()` made. Null for anything else, as a process of another kind or release may report. */
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

/** The sums of all replicas together. */
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
