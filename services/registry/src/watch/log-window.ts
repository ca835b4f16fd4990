export interface WindowPiece<T> {
  readonly items: readonly T[];
  /** Everything up to this revision has been read. */
  readonly through: bigint;
}

export interface WindowLimits<T> {
  readonly items: number;
  readonly bytes: number;
  /** The size of an item. It must always be the same for one item. */
  sizeOf(item: T): number;
}

/**
 * The most recent part of the log, from its floor to its position, in memory once for all watchers. The number of
 * items and their bytes are limited. At a limit, the oldest items are dropped and the floor rises, but the newest push
 * always stays complete.
 */
export class LogWindow<T extends { readonly revision: bigint }> {
  readonly #limits: WindowLimits<T>;
  #items: T[] = [];
  #bytes = 0;
  /** Items before this index are dropped. They are removed from the array many at a time. */
  #start = 0;
  #floor: bigint;
  #position: bigint;
  /** The result of the last read since the last push. Readers that keep up all request the same items. */
  #lastRead: { readonly revision: bigint; readonly limit: number; readonly piece: WindowPiece<T> } | null = null;

  /** @param floor The revision after which the window starts. */
  constructor(limits: WindowLimits<T>, floor: bigint) {
    this.#limits = limits;
    this.#floor = floor;
    this.#position = floor;
  }

  /** No item above this revision is missing. */
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

  /** Add the next items in order of revision. `through` is at least the revision of the last one. */
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

  /** Drop everything and start after another revision. */
  reset(floor: bigint): void {
    this.#items = [];
    this.#bytes = 0;
    this.#start = 0;
    this.#floor = floor;
    this.#position = floor;
    this.#lastRead = null;
  }

  /**
   * The items after a revision, up to `limit`; null when some of them have been dropped. Callers that request the same
   * revision in succession get the same piece.
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

  /** How many of the oldest items to drop, up to a maximum. */
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
    // Removing items from the array moves all later items, so remove many at a time.
    if (this.#start < this.size) return;
    this.#items = this.#items.slice(this.#start);
    this.#start = 0;
  }

  /** Index of the first item after a revision. */
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
