/**
 * Maximum encoded size of a page in bytes, unless its first item is larger. gRPC clients accept messages of 4 MiB. A
 * page of a quarter of that size can be built without delaying other calls, and leaves room for the largest item
 * that an older release accepted.
 */
export const PAGE_BYTES = 1_048_576;

/** The limits of one page or message. */
export interface PageLimits {
  readonly items: number;
  readonly bytes: number;
}

/**
 * Decides item by item what fits into one page. The first item always fits, because otherwise a listing could never
 * get past an item that is too large.
 */
export class PageRoom {
  readonly #limits: PageLimits;
  #items = 0;
  #bytes = 0;

  constructor(limits: PageLimits) {
    this.#limits = limits;
  }

  /**
   * Whether one more item fits. An item that fits is counted. Do not call this again after an item that does not
   * fit.
   */
  take(bytes: number): boolean {
    const { items, bytes: most } = this.#limits;
    if (this.#items >= items) return false;
    if (this.#items > 0 && this.#bytes + bytes > most) return false;
    this.#items += 1;
    this.#bytes += bytes;
    return true;
  }
}

/** Split items, in order, into non-empty parts that each fit into a message. Without items, there are no parts. */
export function* splitBySize<T>(
  items: readonly T[],
  sizeOf: (item: T) => number,
  limits: PageLimits,
): Generator<readonly T[]> {
  let room = new PageRoom(limits);
  let from = 0;
  for (const [index, item] of items.entries()) {
    const size = sizeOf(item);
    if (room.take(size)) continue;
    yield items.slice(from, index);
    from = index;
    room = new PageRoom(limits);
    room.take(size);
  }
  if (items.length > 0) yield from === 0 ? items : items.slice(from);
}
