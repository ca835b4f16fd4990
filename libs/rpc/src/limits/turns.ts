/** How long a call can wait. */
export interface TurnWait {
  readonly signal: AbortSignal;
  readonly mostMs: number;
  /** Create the error of a call that has waited too long. */
  late(): Error;
}

/** Limits how many calls of each party work at a time. Other calls of the party wait in order of arrival. */
export class Turns {
  readonly #working = new Map<string, number>();
  readonly #waiting = new Map<string, Set<() => void>>();

  /** The number of parties that have working calls. */
  get size(): number {
    return this.#working.size;
  }

  /**
   * Wait until the call can work. Returns a function that must be called exactly once, when the work has ended.
   * Rejects with the signal's reason if it aborts first, and with `late()` after the maximum wait.
   */
  async take(party: string, most: number, wait: TurnWait): Promise<() => void> {
    wait.signal.throwIfAborted();
    const working = this.#working.get(party) ?? 0;
    if (working < most) this.#working.set(party, working + 1);
    else await this.#wait(party, wait);
    return () => this.#end(party);
  }

  #wait(party: string, { signal, mostMs, late }: TurnWait): Promise<void> {
    const waiting = this.#waiting.get(party) ?? new Set();
    this.#waiting.set(party, waiting);
    return new Promise((resolve, reject) => {
      const giveUp = (reason: unknown) => {
        clearTimeout(timer);
        signal.removeEventListener("abort", onAbort);
        this.#forget(party, begin);
        reject(reason);
      };
      const onAbort = () => giveUp(signal.reason);
      const timer = setTimeout(() => giveUp(late()), mostMs);
      const begin = () => {
        clearTimeout(timer);
        signal.removeEventListener("abort", onAbort);
        resolve();
      };
      waiting.add(begin);
      signal.addEventListener("abort", onAbort, { once: true });
    });
  }

  /** End a call's work. The next waiting call begins directly, so that no other call can overtake. */
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
