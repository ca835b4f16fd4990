const MOST_MS = 5;
const MOST_PIECES = 8;

/**
 * Bounds the work that callers cause in one iteration of the event loop. Further work waits for the next iteration, in
 * one queue per source. The queues take turns, one piece of work each. In between, other work that is ready continues:
 * the Beats of agents, leases, probes. The queues themselves are not limited. The code that adds work must limit it.
 */
export class LoopBudget {
  readonly #mostMs: number;
  readonly #mostPieces: number;
  readonly #nowMs: () => number;
  readonly #rows = new Map<string, Row>();
  #waiting = 0;
  #leftMs: number;
  #leftPieces: number;
  #isScheduled = false;

  constructor(options: { readonly mostMs?: number; readonly mostPieces?: number; nowMs?(): number } = {}) {
    this.#mostMs = options.mostMs ?? MOST_MS;
    this.#mostPieces = options.mostPieces ?? MOST_PIECES;
    this.#nowMs = options.nowMs ?? (() => performance.now());
    this.#leftMs = this.#mostMs;
    this.#leftPieces = this.#mostPieces;
  }

  /** How many pieces of work wait. */
  get waiting(): number {
    return this.#waiting;
  }

  /**
   * Do a piece of work, now or in a later iteration. The work must not throw.
   *
   * @param source names the queue: the address that caused the work.
   * @param work returns false if there was nothing left to do, so that it does not count.
   */
  run(source: string, work: Work): void {
    this.#schedule();
    if (this.#waiting === 0 && this.#hasRoom) {
      this.#do(work);
      return;
    }
    this.#waiting += 1;
    const row = this.#rows.get(source);
    if (row === undefined) this.#rows.set(source, { pieces: [work], next: 0 });
    else row.pieces.push(work);
  }

  /** Do a piece of work and return its result. Rejects if the work throws. */
  do<T>(source: string, work: () => T): Promise<T> {
    return new Promise((resolve, reject) => {
      this.run(source, () => {
        try {
          resolve(work());
        } catch (error) {
          reject(error);
        }
      });
    });
  }

  /** Resolves when the caller can do its work. */
  turn(source: string): Promise<void> {
    return this.do(source, () => {});
  }

  get #hasRoom(): boolean {
    return this.#leftMs > 0 && this.#leftPieces > 0;
  }

  #do(work: Work): void {
    const startMs = this.#nowMs();
    const hasWorked = work() !== false;
    this.#leftMs -= this.#nowMs() - startMs;
    if (hasWorked) this.#leftPieces -= 1;
  }

  /** Take the next piece of work from the first queue, and move that queue to the end. */
  #take(): Work {
    for (const [source, row] of this.#rows) {
      const work = row.pieces[row.next];
      row.next += 1;
      if (row.next >= MOST_TAKEN) {
        row.pieces.splice(0, row.next);
        row.next = 0;
      }
      this.#rows.delete(source);
      if (row.next < row.pieces.length) this.#rows.set(source, row);
      if (work === undefined) continue;
      this.#waiting -= 1;
      return work;
    }
    throw new Error("nothing waits");
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
    if (this.#waiting === 0) return;
    while (this.#waiting > 0 && this.#hasRoom) this.#do(this.#take());
    // Schedule the next iteration. Before it starts, new work can use only what is left of this iteration's budget.
    this.#schedule();
  }
}

type Work = () => unknown;

/** Number of taken pieces that a queue keeps before it removes them together. */
const MOST_TAKEN = 100;

/** The waiting work of one source. */
interface Row {
  readonly pieces: Work[];
  next: number;
}

/** The budget of this process, which has one event loop. */
export const loopBudget = new LoopBudget();
