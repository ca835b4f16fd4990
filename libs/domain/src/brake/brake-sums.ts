import type { Json } from "../events/events.ts";

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
