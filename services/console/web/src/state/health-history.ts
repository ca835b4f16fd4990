/** A change of a machine's health. */
export interface HealthChange {
  readonly id: string;
  readonly atMs: number;
  /** "" before it was here. */
  readonly before: string;
  readonly after: string;
}

/** How many machines were well at a time, and how many were not. */
export interface HealthAt {
  readonly atMs: number;
  readonly well: number;
  readonly unwell: number;
}

/** Points of a line: about as many as there is room for. */
const POINTS = 96;

/**
 * How many of the machines that are counted now were well at each time since, told from what is now and what changed
 * until then, the oldest first. The last point is the present.
 */
export function healthOverTime(
  now: Readonly<Record<string, number>>,
  changes: readonly HealthChange[],
  { fromMs, nowMs }: { readonly fromMs: number; readonly nowMs: number },
): readonly HealthAt[] {
  let well = now.HEALTHY ?? 0;
  let unwell = (now.UNHEALTHY ?? 0) + (now.UNKNOWN ?? 0);
  const points: HealthAt[] = [];
  let at = changes.length - 1;
  for (let point = POINTS; point >= 0; point -= 1) {
    const atMs = fromMs + ((nowMs - fromMs) * point) / POINTS;
    for (let change = changes[at]; change !== undefined && change.atMs > atMs; change = changes[at]) {
      well += isWell(change.before) - isWell(change.after);
      unwell += isUnwell(change.before) - isUnwell(change.after);
      at -= 1;
    }
    // What the log no longer tells of may have been otherwise: there are never fewer than none.
    points.push({ atMs, well: Math.max(0, well), unwell: Math.max(0, unwell) });
  }
  return points.reverse();
}

const isWell = (health: string) => (health === "HEALTHY" ? 1 : 0);
const isUnwell = (health: string) => (health === "" || health === "HEALTHY" ? 0 : 1);
