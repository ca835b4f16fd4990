export interface WaitingRoomOptions {
  /** Milliseconds until somebody of an address is let in; 0 when that may be now. */
  msUntilFree(address: string): number;
}

/**
 * Where newcomers wait for each other, a row for each address, in the order in which they came: one is let in at a turn of the event loop, so that
 * what it brought along is known and charged before the next one is, and none as long as its address has to wait.
 */
export class WaitingRoom<E extends { readonly address: string }> {
  readonly #options: WaitingRoomOptions;
  readonly #rows = new Map<string, Map<E, () => void>>();

  constructor(options: WaitingRoomOptions) {
    this.#options = options;
  }

  /** How many wait. */
  get size(): number {
    let size = 0;
    for (const row of this.#rows.values()) size += row.size;
    return size;
  }

  /** Let somebody in by calling `letIn`, now or later. */
  enter(newcomer: E, letIn: () => void): void {
    const row = this.#rows.get(newcomer.address);
    if (row !== undefined) {
      row.set(newcomer, letIn);
      return;
    }
    const waitMs = this.#options.msUntilFree(newcomer.address);
    this.#rows.set(newcomer.address, new Map(waitMs === 0 ? [] : [[newcomer, letIn]]));
    if (waitMs === 0) letIn();
    this.#wait(newcomer.address, waitMs);
  }

  /** Forget somebody who is gone. */
  leave(newcomer: E): void {
    this.#rows.get(newcomer.address)?.delete(newcomer);
  }

  #wait(address: string, waitMs: number): void {
    const next = () => this.#next(address);
    if (waitMs > 0) setTimeout(next, waitMs).unref();
    // This turn's end, and the end of the one in which its first bytes are read.
    else setImmediate(() => setImmediate(next));
  }

  #next(address: string): void {
    const row = this.#rows.get(address);
    const [first] = row ?? [];
    if (row === undefined || first === undefined) {
      this.#rows.delete(address);
      return;
    }
    const waitMs = this.#options.msUntilFree(address);
    if (waitMs === 0) {
      const [newcomer, letIn] = first;
      row.delete(newcomer);
      letIn();
    }
    this.#wait(address, waitMs);
  }
}
