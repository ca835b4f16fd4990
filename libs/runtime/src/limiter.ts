/** Lets so many in at a time; the others wait in order. */
export class Limiter {
  #free: number;
  readonly #waiting = new Set<() => void>();

  constructor(size: number) {
    this.#free = size;
  }

  /** Whether there is a place at present. */
  get isFree(): boolean {
    return this.#free > 0;
  }

  /** How many wait for a place. */
  get waiting(): number {
    return this.#waiting.size;
  }

  /** Wait for a place; answers how to give it back, once or more. Rejects when the signal aborts first. */
  async enter(signal: AbortSignal): Promise<() => void> {
    signal.throwIfAborted();
    if (this.#free > 0) this.#free -= 1;
    else await this.#turn(signal);
    let given = false;
    return () => {
      if (given) return;
      given = true;
      this.#leave();
    };
  }

  #turn(signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const onAbort = () => {
        this.#waiting.delete(enter);
        reject(signal.reason);
      };
      const enter = () => {
        signal.removeEventListener("abort", onAbort);
        resolve();
      };
      this.#waiting.add(enter);
      signal.addEventListener("abort", onAbort, { once: true });
    });
  }

  #leave(): void {
    const [next] = this.#waiting;
    if (next === undefined) {
      this.#free += 1;
      return;
    }
    // The place passes on without becoming free: nobody can overtake.
    this.#waiting.delete(next);
    next();
  }
}
