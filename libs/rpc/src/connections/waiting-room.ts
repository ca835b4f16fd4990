/** A newcomer that has waited this long is admitted even if its address is still over budget. */
const MOST_WAIT_MS = 5_000;
/** Time between two such admissions. */
const PACE_MS = 10;
/** So many of an address that is over budget that the last of them is admitted after twice that time at most. */
const MOST_WAITING = 400;

export interface WaitingRoomOptions {
  /** Milliseconds until an address is within its budget again; 0 if it is now. */
  msUntilFree(address: string): number;
  /** Monotonic milliseconds. */
  nowMs(): number;
}

interface Waiting {
  readonly sinceMs: number;
  letIn(): void;
}

/**
 * A queue of newcomers for each address. They are admitted in order, one per turn of the event loop, so that the cost
 * of one is charged before the next is served. While their address is over budget, only those that have waited for five
 * seconds are admitted, at most a hundred a second, and no more than 400 may wait.
 */
export class WaitingRoom<E extends { readonly address: string }> {
  readonly #options: WaitingRoomOptions;
  readonly #rows = new Map<string, Map<E, Waiting>>();
  #isClosed = false;

  constructor(options: WaitingRoomOptions) {
    this.#options = options;
  }

  /** How many wait. */
  get size(): number {
    let size = 0;
    for (const row of this.#rows.values()) size += row.size;
    return size;
  }

  /**
   * Admit a newcomer by calling `letIn`, now or later; never after close(). Whether there was room for it: it was not
   * taken otherwise.
   */
  enter(newcomer: E, letIn: () => void): boolean {
    const { address } = newcomer;
    const waiting = { sinceMs: this.#options.nowMs(), letIn };
    const row = this.#rows.get(address);
    if (row !== undefined) {
      if (row.size >= MOST_WAITING && this.#options.msUntilFree(address) > 0) return false;
      row.set(newcomer, waiting);
      return true;
    }
    const isFree = this.#options.msUntilFree(address) === 0 && !this.#isClosed;
    this.#rows.set(address, new Map(isFree ? [] : [[newcomer, waiting]]));
    if (isFree) letIn();
    this.#goOn(address);
    return true;
  }

  /** Remove a newcomer that has left. */
  leave(newcomer: E): void {
    this.#rows.get(newcomer.address)?.delete(newcomer);
  }

  /** Stop admitting; returns the newcomers still waiting. */
  close(): readonly E[] {
    this.#isClosed = true;
    return [...this.#rows.values()].flatMap((row) => [...row.keys()]);
  }

  #goOn(address: string): void {
    const [first] = this.#rows.get(address)?.values() ?? [];
    const isFree = this.#options.msUntilFree(address) === 0;
    const waitMs = first === undefined || isFree ? 0 : Math.max(PACE_MS, this.#waitMs(address, first));
    const next = () => this.#next(address);
    if (waitMs > 0) setTimeout(next, waitMs).unref();
    // This turn's end, and the end of the one in which its first bytes are read.
    else setImmediate(() => setImmediate(next));
  }

  #waitMs(address: string, { sinceMs }: Waiting): number {
    const { msUntilFree, nowMs } = this.#options;
    return Math.max(0, Math.min(msUntilFree(address), sinceMs + MOST_WAIT_MS - nowMs()));
  }

  #next(address: string): void {
    const row = this.#rows.get(address);
    const [first] = row ?? [];
    if (row === undefined || first === undefined || this.#isClosed) {
      this.#rows.delete(address);
      return;
    }
    const [newcomer, waiting] = first;
    if (this.#waitMs(address, waiting) === 0) {
      row.delete(newcomer);
      waiting.letIn();
    }
    this.#goOn(address);
  }
}
