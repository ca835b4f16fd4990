/** One lease as it was read. Its counter is compared for equality alone: any move is a sign of life. */
export interface LeaseReading {
  readonly id: string;
  readonly counter: number | bigint | string;
}

interface Observation {
  readonly counter: LeaseReading["counter"];
  /** When this observer first read this counter in a row of gapless reads. */
  readonly stillSinceMs: number;
}

/**
 * Tell which leases have run out, by the observer's own monotonic clock: a lease has expired when its counter did not
 * move over `expiryMs` of the observer's own successful reads, without a gap and while it held its own lease. No clock
 * of another machine is asked, so none that jumps can end a lease; an outage of the store is a gap, so neither can
 * that.
 */
export class LeaseObserver {
  readonly #expiryMs: number;
  readonly #maxReadGapMs: number;
  #observations: ReadonlyMap<string, Observation> = new Map();
  #lastReadMs: number | null = null;

  /**
   * @param options `expiryMs` must exceed the interval of renewals several times; `maxReadGapMs` is the longest time
   *   between two reads that is no gap, more than the interval of reads and less than `expiryMs`.
   */
  constructor(options: { readonly expiryMs: number; readonly maxReadGapMs: number }) {
    this.#expiryMs = options.expiryMs;
    this.#maxReadGapMs = options.maxReadGapMs;
  }

  /**
   * Take in one successful read of all leases. A failed read is not passed in: it shows as a gap.
   *
   * @param nowMs monotonic time, taken at the same point of every read.
   * @param holdingOwn whether the observer holds its own lease. If not, it may be the one that is cut off, and every
   *   count starts again with the next read.
   * @returns the ids of expired leases, each with every read until its row is gone or moves.
   */
  observe(rows: readonly LeaseReading[], nowMs: number, holdingOwn: boolean): string[] {
    if (!holdingOwn) {
      this.#observations = new Map();
      this.#lastReadMs = null;
      return [];
    }
    const before = this.#isGapless(nowMs) ? this.#observations : new Map<string, Observation>();
    const after = new Map<string, Observation>();
    const expired: string[] = [];
    for (const { id, counter } of rows) {
      const known = before.get(id);
      const observation = known?.counter === counter ? known : { counter, stillSinceMs: nowMs };
      after.set(id, observation);
      if (nowMs - observation.stillSinceMs >= this.#expiryMs) expired.push(id);
    }
    this.#observations = after;
    this.#lastReadMs = nowMs;
    return expired;
  }

  #isGapless(nowMs: number): boolean {
    if (this.#lastReadMs === null) return true;
    return nowMs - this.#lastReadMs <= this.#maxReadGapMs;
  }
}
