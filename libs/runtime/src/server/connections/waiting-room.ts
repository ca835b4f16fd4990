/** Whoever has waited for so long is let in, whatever others of the address do meanwhile. */
const MOST_WAIT_MS = 5_000;
/** From one to the next of those. */
const PACE_MS = 10;

export interface WaitingRoomOptions {
  /** Milliseconds until somebody of an address is let in; 0 when that may be now. */
  msUntilFree(address: string): number;
  /** Monotonic milliseconds. */
  nowMs(): number;
}

interface Waiting {
  readonly sinceMs: number;
  letIn(): void;
}

/**
 * Where newcomers wait for each other, a row for each address, in the order in which they came: one after the other is let in, so that
 * what it brought along is known and charged before the next one is. While their address has to wait, those are let in that have waited for five seconds,
 * a hundred a second.
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

  /** Let somebody in by calling `letIn`, now or later; never once the room is closed. */
  enter(newcomer: E, letIn: () => void): void {
    const { address } = newcomer;
    const waiting = { sinceMs: this.#options.nowMs(), letIn };
    const row = this.#rows.get(address);
    if (row !== undefined) {
      row.set(newcomer, waiting);
      return;
    }
    const isFree = this.#options.msUntilFree(address) === 0 && !this.#isClosed;
    this.#rows.set(address, new Map(isFree ? [] : [[newcomer, waiting]]));
    if (isFree) letIn();
    this.#goOn(address);
  }

  /** Forget somebody who is gone. */
  leave(newcomer: E): void {
    this.#rows.get(newcomer.address)?.delete(newcomer);
  }

  /** Let nobody in any more; those who wait. */
  close(): readonly E[] {
    this.#isClosed = true;
    return [...this.#rows.values()].flatMap((row) => [...row.keys()]);
  }

  #goOn(address: string): void {
    const [first] = this.#rows.get(address)?.values() ?? [];
    const isFree = this.#options.msUntilFree(address) === 0;
    const waitMs =
      first === undefined || isFree ? 0 : Math.max(PACE_MS, this.#waitMs(address, first));
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
