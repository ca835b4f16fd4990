const MINUTE_MS = 60_000;
/** A PARTIAL brake releases one tenth of its group's nodes per minute. */
const ONE_IN = 10;
/** The cost of one release. Each node of the group earns one unit per millisecond. Integers avoid rounding errors. */
const COST = ONE_IN * MINUTE_MS;

/**
 * The maximum number of reactions that a PARTIAL brake releases per minute in a group of this size: a tenth of the
 * size, and at least one.
 */
export function releasesPerMinute(size: number): number {
  return Math.max(1, Math.floor(size / ONE_IN));
}

/**
 * The average time between two releases of a PARTIAL brake. In a group of fewer than ten nodes, it is longer than a
 * minute.
 */
export function releaseIntervalMs(size: number): number {
  return Math.max(MINUTE_MS / releasesPerMinute(size), COST / size);
}

/**
 * Releases a tenth of a group's size per minute, evenly. Credit starts at zero and grows with time, up to a small
 * maximum. Releases of the last minute are remembered to enforce the limit per minute.
 */
export class ReleasePace {
  readonly #size: number;
  #atMs: number;
  #credit = 0;
  #recent: readonly { readonly atMs: number; readonly count: number }[] = [];

  /**
   * @param size number of nodes in the group.
   * @param nowMs milliseconds of a clock that never runs backwards.
   */
  constructor(size: number, nowMs: number) {
    this.#size = size;
    this.#atMs = nowMs;
  }

  /** How many reactions can be released now. */
  allowance(nowMs: number): number {
    const gained = (nowMs - this.#atMs) * this.#size;
    this.#atMs = nowMs;
    // Limit the credit. Otherwise a group that saved credit while nothing was pending would later be released all at
    // the same time.
    this.#credit = Math.min(this.#credit + gained, gained + COST);
    this.#recent = this.#recent.filter(({ atMs }) => nowMs - atMs < MINUTE_MS);
    const went = this.#recent.reduce((sum, { count }) => sum + count, 0);
    return Math.max(0, Math.min(Math.floor(this.#credit / COST), releasesPerMinute(this.#size) - went));
  }

  /** Record that reactions were released. */
  spend(count: number, nowMs: number): void {
    if (count === 0) return;
    this.#credit -= count * COST;
    this.#recent = [...this.#recent, { atMs: nowMs, count }];
  }
}
