/**
 * One lease as read from the store. Counters are only compared for equality: any change to the counter shows that the
 * holder is alive.
 */
export interface LeaseReading {
  readonly id: string;
  readonly counter: number | bigint | string;
}

interface Observation {
  readonly counter: LeaseReading["counter"];
  /** When this observer first read the current counter. Its reads have had no gap since then. */
  readonly stillSinceMs: number;
}

/**
 * Finds expired leases by the observer's own monotonic clock. A lease has expired if its counter has not changed for
 * `expiryMs` of the observer's own successful reads, without a gap and while the observer held its own lease. No other
 * machine's clock is used, so a clock that jumps cannot end a lease. An outage of the store cannot end a lease either,
 * because the outage is a gap.
 */
export class LeaseObserver {
  readonly #expiryMs: number;
  readonly #maxReadGapMs: number;
  #observations: ReadonlyMap<string, Observation> = new Map();
  #lastReadMs: number | null = null;

  /**
   * @param options `expiryMs` must be several times the interval of renewals. `maxReadGapMs` is the longest time
   *   between two reads that does not count as a gap: more than the interval of reads and less than `expiryMs`.
   */
  constructor(options: { readonly expiryMs: number; readonly maxReadGapMs: number }) {
    this.#expiryMs = options.expiryMs;
    this.#maxReadGapMs = options.maxReadGapMs;
  }

  /**
   * Process one successful read of all leases. Do not call this for a failed read, so that the missing read counts as
   * a gap.
   *
   * @param nowMs monotonic time, taken at the same point of every read.
   * @param holdingOwn whether the observer holds its own lease. If not, the observer itself may be cut off, so all
   *   counts restart at the next read.
   * @returns the ids of expired leases. An id is returned at every read until its row is gone or its counter changes.
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
