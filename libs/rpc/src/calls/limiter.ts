/**
 * Limits the number of operations that run at the same time. Other operations wait, in order. If operations
 * belong to parties, the next operation is the first of the party with the fewest running operations, so that one
 * party's operations do not delay another's.
 */
export class Limiter {
  #free: number;
  readonly #mostOfParty: number;
  /** The number of running operations per party. */
  readonly #inside = new Map<string, number>();
  /** The waiting operations: the function that starts the operation, and its party. */
  readonly #waiting = new Map<() => void, string>();

  /**
   * @param mostOfParty maximum number of one party's operations that run at the same time. The party's further
   *   operations wait even while slots are free.
   */
  constructor(size: number, mostOfParty = Number.POSITIVE_INFINITY) {
    this.#free = size;
    this.#mostOfParty = mostOfParty;
  }

  /** Whether a slot is free. */
  get isFree(): boolean {
    return this.#free > 0;
  }

  /** How many operations wait for a slot. */
  get waiting(): number {
    return this.#waiting.size;
  }

  /** How many operations of a party wait for a slot. */
  waitingOf(party: string): number {
    let count = 0;
    for (const one of this.#waiting.values()) if (one === party) count += 1;
    return count;
  }

  /**
   * Wait for a slot. Returns a function that releases the slot; only its first call has an effect. Rejects if the
   * signal aborts first.
   */
  async enter(signal: AbortSignal, party = ""): Promise<() => void> {
    signal.throwIfAborted();
    if (this.#free > 0 && this.#insideOf(party) < this.#mostOfParty) this.#begin(party);
    else await this.#turn(signal, party);
    let given = false;
    return () => {
      if (given) return;
      given = true;
      this.#leave(party);
    };
  }

  #turn(signal: AbortSignal, party: string): Promise<void> {
    return new Promise((resolve, reject) => {
      const onAbort = () => {
        this.#waiting.delete(enter);
        reject(signal.reason);
      };
      const enter = () => {
        signal.removeEventListener("abort", onAbort);
        resolve();
      };
      this.#waiting.set(enter, party);
      signal.addEventListener("abort", onAbort, { once: true });
    });
  }

  #begin(party: string): void {
    this.#free -= 1;
    this.#inside.set(party, this.#insideOf(party) + 1);
  }

  #leave(party: string): void {
    this.#free += 1;
    const left = this.#insideOf(party) - 1;
    if (left > 0) this.#inside.set(party, left);
    else this.#inside.delete(party);
    const next = this.#next();
    if (next === null) return;
    // Start the next operation in the same tick, so that a new operation cannot take the freed slot.
    const [enter, itsParty] = next;
    this.#waiting.delete(enter);
    this.#begin(itsParty);
    enter();
  }

  #next(): readonly [enter: () => void, party: string] | null {
    let best: readonly [() => void, string] | null = null;
    for (const one of this.#waiting) {
      if (this.#insideOf(one[1]) >= this.#mostOfParty) continue;
      if (best === null || this.#insideOf(one[1]) < this.#insideOf(best[1])) best = one;
    }
    return best;
  }

  #insideOf(party: string): number {
    return this.#inside.get(party) ?? 0;
  }
}
