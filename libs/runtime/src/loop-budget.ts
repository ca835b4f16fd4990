const MOST_MS = 5;
const MOST_PIECES = 32;

/**
 * Bounds the work that callers cause in one turn of the event loop: what goes beyond it waits for the next turn, in the order in which it came.
 * In between, whatever else is ready gets its turn: the Beats of agents, leases, probes. What waits is bounded by who may bring it.
 */
export class LoopBudget {
  readonly #mostMs: number;
  readonly #mostPieces: number;
  readonly #nowMs: () => number;
  #waiting: (() => void)[] = [];
  #leftMs: number;
  #leftPieces: number;
  #isScheduled = false;

  constructor(
    options: { readonly mostMs?: number; readonly mostPieces?: number; nowMs?(): number } = {},
  ) {
    this.#mostMs = options.mostMs ?? MOST_MS;
    this.#mostPieces = options.mostPieces ?? MOST_PIECES;
    this.#nowMs = options.nowMs ?? (() => performance.now());
    this.#leftMs = this.#mostMs;
    this.#leftPieces = this.#mostPieces;
  }

  /** How many pieces of work wait. */
  get waiting(): number {
    return this.#waiting.length;
  }

  /** Do a piece of work that must not throw, now or in one of the next turns. */
  run(work: () => void): void {
    this.#schedule();
    if (this.#waiting.length === 0 && this.#hasRoom) this.#do(work);
    else this.#waiting.push(work);
  }

  /** Do a piece of work, and answer what it answers. Rejects with what it throws. */
  do<T>(work: () => T): Promise<T> {
    return new Promise((resolve, reject) => {
      this.run(() => {
        try {
          resolve(work());
        } catch (error) {
          reject(error);
        }
      });
    });
  }

  get #hasRoom(): boolean {
    return this.#leftMs > 0 && this.#leftPieces > 0;
  }

  #do(work: () => void): void {
    const startMs = this.#nowMs();
    work();
    this.#leftMs -= this.#nowMs() - startMs;
    this.#leftPieces -= 1;
  }

  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    setImmediate(() => this.#turn());
  }

  #turn(): void {
    this.#isScheduled = false;
    this.#leftMs = this.#mostMs;
    this.#leftPieces = this.#mostPieces;
    if (this.#waiting.length === 0) return;
    let done = 0;
    for (const work of this.#waiting) {
      if (!this.#hasRoom) break;
      done += 1;
      this.#do(work);
    }
    this.#waiting = this.#waiting.slice(done);
    // Until the next turn what comes has only what is left of this one.
    this.#schedule();
  }
}

/** The budget of this process, which has one event loop. */
export const loopBudget = new LoopBudget();
