const MINUTE_MS = 60_000;
/** Of a group, one in ten is released in a minute while its brake is PARTIAL. */
const ONE_IN = 10;
/** What one release costs, where each node of the group earns one millisecond in each. Whole numbers add up exactly. */
const COST = ONE_IN * MINUTE_MS;

/**
 * How many reactions of a group of this size a PARTIAL brake releases in any minute at most: a tenth, and one at least.
 */
export function releasesPerMinute(size: number): number {
  return Math.max(1, Math.floor(size / ONE_IN));
}

/**
 * How long it takes such a brake from one release to the next, on the average: a group of less than ten waits longer
 * than a minute.
 */
export function releaseIntervalMs(size: number): number {
  return Math.max(MINUTE_MS / releasesPerMinute(size), COST / size);
}

/**
 * Lets a tenth of a group's size through in a minute, evenly: credit grows with time, little of it is saved up, and
 * what was let through in the last minute is remembered. It begins without credit.
 */
export class ReleasePace {
  readonly #size: number;
  #atMs: number;
  #credit = 0;
  #recent: readonly { readonly atMs: number; readonly count: number }[] = [];

  /** @param size of the group. Times are milliseconds of one clock that never runs backwards. */
  constructor(size: number, nowMs: number) {
    this.#size = size;
    this.#atMs = nowMs;
  }

  /** How many may go now. */
  allowance(nowMs: number): number {
    const gained = (nowMs - this.#atMs) * this.#size;
    this.#atMs = nowMs;
    // Saved up by a group that has nothing pending, it would come as one blow.
    this.#credit = Math.min(this.#credit + gained, gained + COST);
    this.#recent = this.#recent.filter(({ atMs }) => nowMs - atMs < MINUTE_MS);
    const went = this.#recent.reduce((sum, { count }) => sum + count, 0);
    return Math.max(0, Math.min(Math.floor(this.#credit / COST), releasesPerMinute(this.#size) - went));
  }

  /** So many went. */
  spend(count: number, nowMs: number): void {
    if (count === 0) return;
    this.#credit -= count * COST;
    this.#recent = [...this.#recent, { atMs: nowMs, count }];
  }
}
