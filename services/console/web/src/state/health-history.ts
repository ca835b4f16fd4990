/** A change to a machine's health. */
export interface HealthChange {
  readonly id: string;
  readonly atMs: number;
  /** The health before the change; "" for a new machine. */
  readonly before: string;
  readonly after: string;
}

/** Number of healthy and unhealthy machines at a time; null where it is unknown, and before the first one joined. */
export interface HealthAt {
  readonly atMs: number;
  readonly well: number | null;
  readonly unwell: number | null;
}

/** Number of points in a line, about the maximum that fits. */
const POINTS = 96;

/**
 * Compute how many machines were healthy at each time, from the current counts and the changes up to now, oldest
 * first. The last point is the present. Counts before `knownFromMs` are unknown, because the log lacks those changes.
 * Before the first machine joined, there is a gap, too.
 */
export function healthOverTime(
  now: Readonly<Record<string, number>>,
  changes: readonly HealthChange[],
  {
    fromMs,
    nowMs,
    knownFromMs = fromMs,
  }: { readonly fromMs: number; readonly nowMs: number; readonly knownFromMs?: number },
): readonly HealthAt[] {
  let well = now.HEALTHY ?? 0;
  let unwell = (now.UNHEALTHY ?? 0) + (now.UNKNOWN ?? 0);
  const points: HealthAt[] = [];
  const hasBegun = changes.some(({ before }) => before === "");
  let at = changes.length - 1;
  for (let point = POINTS; point >= 0; point -= 1) {
    const atMs = fromMs + ((nowMs - fromMs) * point) / POINTS;
    if (atMs < knownFromMs) {
      points.push({ atMs, well: null, unwell: null });
      continue;
    }
    for (let change = changes[at]; change !== undefined && change.atMs > atMs; change = changes[at]) {
      well += isWell(change.before) - isWell(change.after);
      unwell += isUnhealthy(change.before) - isUnhealthy(change.after);
      at -= 1;
    }
    // The first machine had not joined yet, so there is nothing to count.
    if (well + unwell <= 0 && at < 0 && hasBegun) {
      points.push({ atMs, well: null, unwell: null });
      continue;
    }
    // Clamp the counts at zero, because a change and the counts can arrive in either order.
    points.push({ atMs, well: Math.max(0, well), unwell: Math.max(0, unwell) });
  }
  return points.reverse();
}

const isWell = (health: string) => (health === "HEALTHY" ? 1 : 0);
const isUnhealthy = (health: string) => (health === "" || health === "HEALTHY" ? 0 : 1);
