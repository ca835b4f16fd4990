/** Sessions with the same heartbeat interval. */
export interface PacedGroup {
  /** The policy's interval, in milliseconds. */
  readonly intervalMs: number;
  /** The longest possible interval: a third of the time to UNHEALTHY. At least `intervalMs`. */
  readonly longestMs: number;
  readonly sessions: number;
}

/**
 * Factors are powers of this number, so that a single new or ended session rarely changes the intervals of the other
 * sessions.
 */
const STEP = 1.1;
/** Intervals become shorter again only if the total afterwards stays within this fraction of the budget. */
const SHORTENED_BELOW = 0.9;

/** The interval of a session if intervals are stretched by this factor (at least 1), in whole milliseconds. */
export function pacedIntervalMs(
  { intervalMs, longestMs }: Pick<PacedGroup, "intervalMs" | "longestMs">,
  factor: number,
): number {
  return Math.max(intervalMs, Math.floor(Math.min(intervalMs * factor, longestMs)));
}

/**
 * Heartbeats per second of all sessions if intervals are stretched by this factor; `Infinity` stretches intervals to
 * the longest.
 */
export function heartbeatsPerSecond(groups: Iterable<PacedGroup>, factor: number): number {
  let total = 0;
  for (const group of groups) total += (group.sessions * 1000) / pacedIntervalMs(group, factor);
  return total;
}

/**
 * How much to stretch intervals so that the total stays within the budget: the smallest sufficient power of STEP. If
 * none is sufficient, all intervals are at their longest, and the caller must refuse sessions.
 */
export function stretchFactor(groups: readonly PacedGroup[], budgetPerSecond: number): number {
  const mostNeeded = Math.max(1, ...groups.map(({ intervalMs, longestMs }) => longestMs / intervalMs));
  let factor = 1;
  while (factor < mostNeeded && heartbeatsPerSecond(groups, factor) > budgetPerSecond) factor *= STEP;
  return factor;
}

/**
 * The next factor. It increases as soon as the budget requires an increase, but decreases only if a reserve remains.
 */
export function nextFactor(current: number, groups: readonly PacedGroup[], budgetPerSecond: number): number {
  const needed = stretchFactor(groups, budgetPerSecond);
  if (needed >= current) return needed;
  return Math.min(current, stretchFactor(groups, budgetPerSecond * SHORTENED_BELOW));
}

/** Whether one more session fits into the budget if all intervals are at their longest. */
export function mayAdmit(
  groups: Iterable<PacedGroup>,
  newcomer: Pick<PacedGroup, "intervalMs" | "longestMs">,
  budgetPerSecond: number,
): boolean {
  const least = heartbeatsPerSecond(groups, Number.POSITIVE_INFINITY);
  const { intervalMs, longestMs } = newcomer;
  const own = heartbeatsPerSecond([{ intervalMs, longestMs, sessions: 1 }], Number.POSITIVE_INFINITY);
  return least + own <= budgetPerSecond;
}

/**
 * Time over which to spread the return of agents that are sent away together, in milliseconds. It is the time that
 * the accepting replicas need to welcome these agents, but at least a second.
 *
 * @param plan `replicas` is the number of replicas that accept the agents (0 counts as 1). `hellosPerSecond` is how
 *   many agents each of these replicas can accept.
 */
export function reconnectWindow(plan: {
  readonly agents: number;
  readonly replicas: number;
  readonly hellosPerSecond: number;
}): number {
  const { agents, replicas, hellosPerSecond } = plan;
  const perSecond = hellosPerSecond * Math.max(1, replicas);
  return Math.max(LEAST_WINDOW_MS, Math.ceil((agents * 1000) / perSecond));
}

const LEAST_WINDOW_MS = 1_000;
