/**
 * Limits how many run at a time; the others wait in order. With parties, the next is the first of the party with the
 * fewest running, so that one party's requests do not delay another's.
 */
export class Limiter {
  #free: number;
  readonly #mostOfParty: number;
  /** How many of each party are running. */
  readonly #inside = new Map<string, number>();
  /** The waiting requests: a function that starts each, and its party. */
  readonly #waiting = new Map<() => void, string>();

  /** @param mostOfParty how many of one party run at a time; the others of it wait even while there are places. */
  constructor(size: number, mostOfParty = Number.POSITIVE_INFINITY) {
    this.#free = size;
    this.#mostOfParty = mostOfParty;
  }

  /** Whether there is a place at present. */
  get isFree(): boolean {
    return this.#free > 0;
  }

  /** How many wait for a place. */
  get waiting(): number {
    return this.#waiting.size;
  }

  /** How many of a party wait for a place. */
  waitingOf(party: string): number {
    let count = 0;
    for (const one of this.#waiting.values()) if (one === party) count += 1;
    return count;
  }

  /** Wait for a place; answers how to give it back, once or more. Rejects when the signal aborts first. */
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
    // In the same turn: the freed place is never visible to a newcomer.
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
