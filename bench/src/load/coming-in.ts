/** The number of agents that arrive in one group. Groups cost the store less than single arrivals. */
const TOGETHER = 250;
/** The time over which the agents of a group arrive. */
const SPREAD_MS = 100;
/** The initial arrival rate, in agents per second. Set `ARRIVALS` on a machine with many cores. */
const FIRST_A_SECOND = Number(process.env.ARRIVALS ?? 200);
/**
 * The number of agents at which arrivals would stop. If this many agents beat every 15 s, heartbeats use both
 * cores that servers and loaders share, and leave no CPU for further agents.
 */
const CROWD = 120_000;
const CROWD_INTERVAL_MS = 15_000;

/**
 * When the n-th agent of a fleet connects, in milliseconds after the first agent. The rate falls as more
 * agents are connected, because a machine that is too busy to respond in time loses the agents that it
 * already has.
 */
export function comesAtMs(n: number, intervalMs: number): number {
  const crowd = CROWD * Math.max(1, intervalMs / CROWD_INTERVAL_MS);
  const before = Math.floor(n / TOGETHER) * TOGETHER;
  const shareFree = Math.max(0.1, 1 - before / crowd);
  const togetherAtMs = -Math.log(shareFree) * (crowd / FIRST_A_SECOND) * 1_000;
  return togetherAtMs + ((n - before) / TOGETHER) * SPREAD_MS;
}
