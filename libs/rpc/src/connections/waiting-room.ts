/** Maximum time that a newcomer waits, in milliseconds, even if its address is still over budget. */
const MOST_WAIT_MS = 5_000;
/** Minimum time between two admissions from an address that is over budget, in milliseconds. */
const PACE_MS = 10;
/** Maximum number of waiting newcomers of an address. The last of them is admitted after at most twice MOST_WAIT_MS. */
const MOST_WAITING = 400;

export interface WaitingRoomOptions {
  /** Milliseconds until an address is within its budget again; 0 if it already is. */
  msUntilFree(address: string): number;
  /** The monotonic time in milliseconds. */
  nowMs(): number;
}

interface Waiting {
  readonly sinceMs: number;
  letIn(): void;
}

/**
 * A queue of new connections for each address. They are admitted in order, one per iteration of the event loop, so that
 * the cost of one is charged before the next is served. While an address is over budget, only connections that have
 * waited for five seconds are admitted, at most a hundred per second. At most 400 connections of an address can wait.
 */
export class WaitingRoom<E extends { readonly address: string }> {
  readonly #options: WaitingRoomOptions;
  readonly #rows = new Map<string, Map<E, Waiting>>();
  #isClosed = false;

  constructor(options: WaitingRoomOptions) {
    this.#options = options;
  }

  /** The number of waiting connections. */
  get size(): number {
    let size = 0;
    for (const row of this.#rows.values()) size += row.size;
    return size;
  }

  /**
   * Admit a newcomer by calling `letIn`, now or later, but not after close(). Returns false if the queue is full. In
   * that case, `letIn` is not called.
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

  /** Stop admitting. Returns the newcomers that still wait. */
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
    // Wait for the end of this iteration and of the next one, which reads the first bytes of the admitted connection.
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
