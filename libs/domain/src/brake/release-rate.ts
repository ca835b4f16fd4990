import type { BrakeState } from "./brake.ts";
import { releaseIntervalMs, releasesPerMinute } from "./brake-pace.ts";

/** A brake, and the size of its group when it was set. */
export interface BrakeSetting {
  readonly state: BrakeState;
  readonly size: number;
}

/** How fast reactions of a group are released. */
export interface ReleaseRate {
  /** In any minute at most; 0 for none. */
  readonly perMinute: number;
  /** From one to the next on the average; infinity for none. */
  readonly intervalMs: number;
  /** Whether the cluster's brake is the limit, because it is stricter than the group's own. */
  readonly isByCluster: boolean;
}

/**
 * How fast a group's reactions are released, which both its own brake and the cluster's have to allow; null when
 * neither limits them.
 *
 * @param cluster null for the cluster's own brake.
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
