const MOST_MS = 5;
const MOST_PIECES = 8;

/**
 * Bounds the work that callers cause in one turn of the event loop: what goes beyond it waits for the next turn, a row
 * for each source, of which one piece each is done in turn. In between, whatever else is ready goes on: the Beats of
 * agents, leases, probes. What waits is bounded by who may bring it.
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
   * Do a piece of work that must not throw, now or in one of the next turns.
   *
   * @param source whose row it waits in: an address.
   * @param work answers false when there was nothing to do any more, which is not counted.
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

  /** Do a piece of work, and answer what it answers. Rejects with what it throws. */
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

  /** Wait for the turn of a piece of work that goes on from there. */
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

  /** The next piece of the row that is next; that row is the last then. */
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
    // Until the next turn what comes has only what is left of this one.
    this.#schedule();
  }
}

type Work = () => unknown;

/** Pieces that were taken are forgotten by so many. */
const MOST_TAKEN = 100;

/** What one source has waiting. */
interface Row {
  readonly pieces: Work[];
  next: number;
}

/** The budget of this process, which has one event loop. */
export const loopBudget = new LoopBudget();
