import { setImmediate } from "node:timers/promises";
import type { DescMessage, MessageInitShape, MessageShape } from "@bufbuild/protobuf";
import { PAGE_BYTES, PageRoom } from "@rollcall/domain";
import { EncodedItems, isBinaryCall } from "./encoded-items.ts";
import { encodeFast } from "./fast-encoder.ts";

/** Number of rows per read. Even if each row has the maximum size, this many need little memory. */
const READ_ROWS = 128;

/** Number of bytes to encode before other work of the process can run. Encoding them takes some milliseconds. */
const BYTES_PER_TICK = 32_768;

let lastTurn: Promise<void> = Promise.resolve();

/**
 * Wait until the event loop has run everything else that is ready. In each iteration, only one of the pages in
 * progress continues.
 */
function nextLoopTick(): Promise<void> {
  lastTurn = lastTurn.then(() => setImmediate());
  return lastTurn;
}

/** The part of a handler's context that a page needs. */
export interface PagedCall {
  readonly requestHeader: Headers;
  readonly signal: AbortSignal;
}

/** The contents of a page. */
export interface PageOptions<Row, Item extends DescMessage> {
  /**
   * The rows from the start of the page on, in pieces of bounded size. There must be at least one row more than the
   * limit, if that many exist.
   */
  readonly rows: AsyncIterable<readonly Row[]> | Iterable<readonly Row[]>;
  /** Maximum number of items. */
  readonly limit: number;
  readonly item: Item;
  toMessage(row: Row): MessageShape<Item>;
}

/** A page that can be sent as a response. */
export interface Page<Row> {
  /** The last row; null if there are none. */
  readonly last: Row | null;
  /** The last row if more rows follow it, so that the next page can continue there; null on the last page. */
  readonly next: Row | null;
  /** Create the response, with the page's items in this field. */
  answer<Response extends DescMessage>(
    response: Response,
    field: string & keyof MessageShape<Response>,
    rest: MessageInitShape<Response>,
  ): MessageShape<Response>;
  /** The same items in reverse order. */
  reversed(): Page<Row>;
}

/**
 * Create a page with as many rows as the limits on rows and bytes allow. The items are encoded one by one, with pauses
 * for other work. The first item is included whatever its size. Rejects with the reason of the call's signal.
 */
export async function readPage<Row, Item extends DescMessage>(
  { requestHeader, signal }: PagedCall,
  { rows, limit, item, toMessage }: PageOptions<Row, Item>,
): Promise<Page<Row>> {
  const room = new PageRoom({ items: limit, bytes: PAGE_BYTES });
  const isBinary = isBinaryCall(requestHeader);
  const items = new EncodedItems(item);
  let bytesOfTurn = BYTES_PER_TICK;
  let last: Row | null = null;
  for await (const piece of rows) {
    for (const row of piece) {
      if (bytesOfTurn >= BYTES_PER_TICK) {
        bytesOfTurn = 0;
        await nextLoopTick();
        signal.throwIfAborted();
      }
      const message = toMessage(row);
      const bytes = encodeFast(item, message);
      if (!room.take(bytes.length)) return pageOf(items, last, last);
      if (isBinary) items.addBytes(bytes);
      else items.add(message);
      last = row;
      bytesOfTurn += bytes.length;
    }
  }
  return pageOf(items, last, null);
}

/**
 * Read rows in order and in parts, up to `limit` plus one. The extra row shows whether there is another page.
 *
 * @param read returns up to `count` rows after a cursor; fewer mean that no rows are left.
 */
export async function* readRows<Row, Cursor>(options: {
  readonly limit: number;
  readonly from: Cursor;
  read(after: Cursor, count: number): Promise<readonly Row[]>;
  cursorOf(row: Row): Cursor;
}): AsyncGenerator<readonly Row[]> {
  const { read, cursorOf } = options;
  let after = options.from;
  for (let left = options.limit + 1; left > 0; left -= READ_ROWS) {
    const count = Math.min(left, READ_ROWS);
    const rows = await read(after, count);
    yield rows;
    const last = rows.at(-1);
    if (last === undefined || rows.length < count) return;
    after = cursorOf(last);
  }
}

function pageOf<Row, Item extends DescMessage>(
  items: EncodedItems<Item>,
  last: Row | null,
  next: Row | null,
): Page<Row> {
  return {
    last,
    next,
    answer: (response, field, rest) => items.answer(response, field, rest),
    reversed: () => pageOf(items.reversed(), last, next),
  };
}
