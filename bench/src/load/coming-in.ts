/** So many agents come at once, which costs the record less than if they came one by one. */
const TOGETHER = 250;
/** Spread over so long. */
const SPREAD_MS = 100;
/** So fast the first of them come in; `ARRIVALS` says how many a second where cores are plenty. */
const FIRST_A_SECOND = Number(process.env.ARRIVALS ?? 200);
/**
 * To hold so many agents that beat every 15 s would take two cores that servers and loaders share, and leave nothing
 * for further ones.
 */
const CROWD = 120_000;
const CROWD_INTERVAL_MS = 15_000;

/**
 * When the n-th agent of a fleet comes, in milliseconds after the first: the more are held, the slower others come,
 * since a machine that is too busy to answer in time loses those that it has.
 */
export function comesAtMs(n: number, intervalMs: number): number {
  const crowd = CROWD * Math.max(1, intervalMs / CROWD_INTERVAL_MS);
  const before = Math.floor(n / TOGETHER) * TOGETHER;
  const shareFree = Math.max(0.1, 1 - before / crowd);
  const togetherAtMs = -Math.log(shareFree) * (crowd / FIRST_A_SECOND) * 1_000;
  return togetherAtMs + ((n - before) / TOGETHER) * SPREAD_MS;
}
