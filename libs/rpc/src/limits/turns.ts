/** Lets each party have so many calls at work at a time; its others wait in the order in which they came. */
export class Turns {
  readonly #working = new Map<string, number>();
  readonly #waiting = new Map<string, Set<() => void>>();

  /** How many parties have calls at work. */
  get size(): number {
    return this.#working.size;
  }

  /**
   * Wait for a turn; answers how to end it, which must be called once. Rejects with the signal's reason when that
   * aborts first.
   */
  async take(party: string, most: number, signal: AbortSignal): Promise<() => void> {
    signal.throwIfAborted();
    const working = this.#working.get(party) ?? 0;
    if (working < most) this.#working.set(party, working + 1);
    else await this.#wait(party, signal);
    return () => this.#end(party);
  }

  #wait(party: string, signal: AbortSignal): Promise<void> {
    const waiting = this.#waiting.get(party) ?? new Set();
    this.#waiting.set(party, waiting);
    return new Promise((resolve, reject) => {
      const onAbort = () => {
        this.#forget(party, begin);
        reject(signal.reason);
      };
      const begin = () => {
        signal.removeEventListener("abort", onAbort);
        resolve();
      };
      waiting.add(begin);
      signal.addEventListener("abort", onAbort, { once: true });
    });
  }

  /** A turn passes on to the next without becoming free, so no call can overtake. */
  #end(party: string): void {
    const [next] = this.#waiting.get(party) ?? [];
    if (next !== undefined) {
      this.#forget(party, next);
      next();
      return;
    }
    const working = (this.#working.get(party) ?? 1) - 1;
    if (working === 0) this.#working.delete(party);
    else this.#working.set(party, working);
  }

  #forget(party: string, begin: () => void): void {
    const waiting = this.#waiting.get(party);
    waiting?.delete(begin);
    if (waiting?.size === 0) this.#waiting.delete(party);
  }
}
