/** A piece of the window. */
export interface WindowPiece<T> {
  readonly items: readonly T[];
  /** Everything up to this revision has been read. */
  readonly through: bigint;
}

/** How much a window keeps. */
export interface WindowLimits<T> {
  readonly items: number;
  readonly bytes: number;
  /** The same each time for one item. */
  sizeOf(item: T): number;
}

/**
 * The most recent part of the log, in memory once for all watchers: everything above its floor up to its position. It
 * is bounded in items and in bytes: at a limit the oldest items leave and the floor rises; the newest push always stays
 * whole.
 */
export class LogWindow<T extends { readonly revision: bigint }> {
  readonly #limits: WindowLimits<T>;
  #items: T[] = [];
  #bytes = 0;
  /** Items before this index have left; they are removed many at a time. */
  #start = 0;
  #floor: bigint;
  #position: bigint;
  /** What was read last, since the last push: readers that keep up read the same. */
  #lastRead: { readonly revision: bigint; readonly limit: number; readonly piece: WindowPiece<T> } | null = null;

  /** `floor`: the revision after which it begins. */
  constructor(limits: WindowLimits<T>, floor: bigint) {
    this.#limits = limits;
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
    for (const item of items) {
      this.#items.push(item);
      this.#bytes += this.#limits.sizeOf(item);
    }
    this.#position = through;
    this.#lastRead = null;
    const excess = this.#excess(this.size - items.length);
    if (excess > 0) this.#drop(excess);
  }

  /** Forget everything and begin after another revision. */
  reset(floor: bigint): void {
    this.#items = [];
    this.#bytes = 0;
    this.#start = 0;
    this.#floor = floor;
    this.#position = floor;
    this.#lastRead = null;
  }

  /**
   * What lies above a revision, `limit` items at most; null when some of that has left the window already. Those who
   * ask for the same one after the other get the same piece.
   */
  readAfter(revision: bigint, limit: number): WindowPiece<T> | null {
    if (revision < this.#floor) return null;
    if (revision >= this.#position) return { items: [], through: revision };
    const last = this.#lastRead;
    if (last !== null && last.revision === revision && last.limit === limit) return last.piece;
    const piece = this.#pieceAfter(revision, limit);
    this.#lastRead = { revision, limit, piece };
    return piece;
  }

  #pieceAfter(revision: bigint, limit: number): WindowPiece<T> {
    const from = this.#indexAfter(revision);
    const items = this.#items.slice(from, from + limit);
    const last = items.at(-1)?.revision ?? revision;
    const isEnd = from + items.length === this.#items.length;
    return { items, through: isEnd ? this.#position : last };
  }

  /** How many of the oldest items have to leave, of so many that may. */
  #excess(most: number): number {
    const { items, bytes, sizeOf } = this.#limits;
    let count = 0;
    let left = this.#bytes;
    while (count < most && (this.size - count > items || left > bytes)) {
      const oldest = this.#items[this.#start + count];
      left -= oldest === undefined ? 0 : sizeOf(oldest);
      count += 1;
    }
    this.#bytes = left;
    return count;
  }

  #drop(count: number): void {
    this.#start += count;
    this.#floor = this.#items[this.#start - 1]?.revision ?? this.#floor;
    // Each removal moves what stays: done once in a while, it costs next to nothing an item.
    if (this.#start < this.size) return;
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
