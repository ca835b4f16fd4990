import type { BrakeState } from "./brake.ts";
import { releaseIntervalMs, releasesPerMinute } from "./brake-pace.ts";

/** A brake's state, and the size of its group when it was set. */
export interface BrakeSetting {
  readonly state: BrakeState;
  readonly size: number;
}

/** How fast a group's reactions are released. */
export interface ReleaseRate {
  /** Maximum number of releases per minute; 0 for none. */
  readonly perMinute: number;
  /** Average time between two releases; infinity if none are released. */
  readonly intervalMs: number;
  /** Whether the cluster's brake sets the limit, because it is stricter than the group's. */
  readonly isByCluster: boolean;
}

/**
 * How fast a group's reactions are released. Both the group's brake and the cluster's brake must allow a
 * release. Null if neither limits the rate.
 *
 * @param cluster the cluster's brake; null if `own` is the cluster's brake.
 */
export function releaseRate(own: BrakeSetting, cluster: BrakeSetting | null): ReleaseRate | null {
  const ownMs = intervalOf(own);
  const clusterMs = cluster === null ? 0 : intervalOf(cluster);
  const intervalMs = Math.max(ownMs, clusterMs);
  if (intervalMs === 0) return null;
  const isByCluster = clusterMs > ownMs;
  const { size } = isByCluster && cluster !== null ? cluster : own;
  const perMinute = intervalMs === Number.POSITIVE_INFINITY ? 0 : releasesPerMinute(size);
  return { perMinute, intervalMs, isByCluster };
}

function intervalOf({ state, size }: BrakeSetting): number {
  switch (state) {
    case "NORMAL":
      return 0;
    case "PARTIAL":
      return releaseIntervalMs(size);
    case "FULL":
    case "FROZEN":
      return Number.POSITIVE_INFINITY;
  }
}
