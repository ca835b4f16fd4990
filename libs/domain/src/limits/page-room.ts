/**
 * Most bytes of one page, encoded, unless its first item alone has more. Clients of gRPC take messages of 4 MiB; a page
 * of a fourth of it is made in less time than others notice, and leaves room for the largest item that an older release
 * let in.
 */
export const PAGE_BYTES = 1_048_576;

/** What one page, or one message, may have. */
export interface PageLimits {
  readonly items: number;
  readonly bytes: number;
}

/** Decides item by item what fits into one page. The first always fits, or a listing could not get past it. */
export class PageRoom {
  readonly #limits: PageLimits;
  #items = 0;
  #bytes = 0;

  constructor(limits: PageLimits) {
    this.#limits = limits;
  }

  /** Whether one more item fits; then it is counted. Ask no further after the first that does not fit. */
  take(bytes: number): boolean {
    const { items, bytes: most } = this.#limits;
    if (this.#items >= items) return false;
    if (this.#items > 0 && this.#bytes + bytes > most) return false;
    this.#items += 1;
    this.#bytes += bytes;
    return true;
  }
}

/** Split items in order into parts that fit into a message each, none of them empty; no parts for no items. */
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
