/** A piece of the window. */
export interface WindowPiece<T> {
  readonly items: readonly T[];
  /** Everything up to this revision has been read. */
  readonly through: bigint;
}

/**
 * The most recent part of the log, in memory once for all watchers: everything above its floor up to its position. It is
 * bounded: at the limit the oldest items leave and the floor rises; the newest push always stays whole.
 */
export class LogWindow<T extends { readonly revision: bigint }> {
  readonly #limit: number;
  #items: T[] = [];
  /** Items before this index have left; they are removed many at a time. */
  #start = 0;
  #floor: bigint;
  #position: bigint;

  /** `limit`: items at most. `floor`: the revision after which it begins. */
  constructor(limit: number, floor: bigint) {
    this.#limit = limit;
    this.#floor = floor;
    this.#position = floor;
  }

  /** Nothing above this revision is missing. */
  get floor(): bigint {
    return this.#floor;
  }

  /** Everything up to this revision has been pushed. */
  get position(): bigint {
    return this.#position;
  }

  get size(): number {
    return this.#items.length - this.#start;
  }

  /** Add what came next, in order of revision; `through` is at least the last one. */
  push(items: readonly T[], through: bigint): void {
    for (const item of items) this.#items.push(item);
    this.#position = through;
    const excess = Math.min(this.size - this.#limit, this.size - items.length);
    if (excess > 0) this.#drop(excess);
  }

  /** Forget everything and begin after another revision. */
  reset(floor: bigint): void {
    this.#items = [];
    this.#start = 0;
    this.#floor = floor;
    this.#position = floor;
  }

  /** What lies above a revision, `limit` items at most; null when some of that has left the window already. */
  readAfter(revision: bigint, limit: number): WindowPiece<T> | null {
    if (revision < this.#floor) return null;
    const from = this.#indexAfter(revision);
    const items = this.#items.slice(from, from + limit);
    const last = items.at(-1)?.revision ?? revision;
    const isEnd = from + items.length === this.#items.length;
    return { items, through: isEnd && this.#position > last ? this.#position : last };
  }

  #drop(count: number): void {
    this.#start += count;
    this.#floor = this.#items[this.#start - 1]?.revision ?? this.#floor;
    // Each removal moves what stays: done once in a while, it costs next to nothing an item.
    if (this.#start < this.#limit) return;
    this.#items = this.#items.slice(this.#start);
    this.#start = 0;
  }

  /** Index of the first item above a revision. */
  #indexAfter(revision: bigint): number {
    let low = this.#start;
    let high = this.#items.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      const item = this.#items[middle];
      if (item !== undefined && item.revision <= revision) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
