/** Sessions that are to beat at one interval. */
export interface PacedGroup {
  /** What the policy says, in milliseconds. */
  readonly intervalMs: number;
  /** What it may be stretched to: a third of the time to UNHEALTHY. At least `intervalMs`. */
  readonly longestMs: number;
  readonly sessions: number;
}

/** Factors are whole powers of this, so that a session more or less does not move the interval of all the others. */
const STEP = 1.1;
/** How far below the budget the total must be before intervals become shorter again. */
const SHORTENED_BELOW = 0.9;

/** The interval of a session, in whole milliseconds, under a factor of at least 1. */
export function pacedIntervalMs(
  { intervalMs, longestMs }: Pick<PacedGroup, "intervalMs" | "longestMs">,
  factor: number,
): number {
  return Math.max(intervalMs, Math.floor(Math.min(intervalMs * factor, longestMs)));
}

/** Heartbeats per second of all sessions under a factor; `Infinity` for their sum at the longest intervals. */
export function heartbeatsPerSecond(groups: Iterable<PacedGroup>, factor: number): number {
  let total = 0;
  for (const group of groups) total += (group.sessions * 1000) / pacedIntervalMs(group, factor);
  return total;
}

/**
 * The factor by which intervals have to be stretched, so that the total stays within the budget: the least step that
 * does, or where none does, the one at which every interval is as long as it may be. Beyond that, sessions have to be
 * refused.
 */
export function stretchFactor(groups: readonly PacedGroup[], budgetPerSecond: number): number {
  const mostNeeded = Math.max(1, ...groups.map(({ intervalMs, longestMs }) => longestMs / intervalMs));
  let factor = 1;
  while (factor < mostNeeded && heartbeatsPerSecond(groups, factor) > budgetPerSecond) factor *= STEP;
  return factor;
}

/** The factor to go on with: up at once when the budget asks for it, down only when there is room to spare. */
export function nextFactor(current: number, groups: readonly PacedGroup[], budgetPerSecond: number): number {
  const needed = stretchFactor(groups, budgetPerSecond);
  if (needed >= current) return needed;
  return Math.min(current, stretchFactor(groups, budgetPerSecond * SHORTENED_BELOW));
}

/** Whether one more session can be taken, every interval stretched as far as it may be. */
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
 * Over how long agents that were sent away together are spread, in milliseconds: as long as the replicas that are left
 * take to welcome them, and a second at least.
 *
 * @param plan `replicas` are those that take the agents in, counted as one at least; `hellosPerSecond` is what each can
 * take.
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
