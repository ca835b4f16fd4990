import { setImmediate } from "node:timers/promises";
import type { DescMessage, MessageInitShape, MessageShape } from "@bufbuild/protobuf";
import { PAGE_BYTES, PageRoom } from "@rollcall/domain";
import { EncodedItems, isBinaryCall } from "./encoded-items.ts";
import { encodeFast } from "./fast-encoder.ts";

/** Rows of one read: few enough that they take little memory, however large they are allowed to be. */
const READ_ROWS = 128;

/** After this many bytes the process turns to others: to encode them takes some milliseconds. */
const BYTES_A_TURN = 32_768;

let lastTurn: Promise<void> = Promise.resolve();

/** Wait until the event loop has served what else is ready. Pages that are made at the same time go on one a turn. */
function nextTurn(): Promise<void> {
  lastTurn = lastTurn.then(() => setImmediate());
  return lastTurn;
}

/** A call that is answered with a page, as its handler sees it. */
export interface PagedCall {
  readonly requestHeader: Headers;
  readonly signal: AbortSignal;
}

/** What a page is made of. */
export interface PageOptions<Row, Item extends DescMessage> {
  /**
   * The rows from where the page begins, in pieces of a bounded size, one more than the limit at least if there are so
   * many.
   */
  readonly rows: AsyncIterable<readonly Row[]> | Iterable<readonly Row[]>;
  /** Items at most. */
  readonly limit: number;
  readonly item: Item;
  toMessage(row: Row): MessageShape<Item>;
}

/** A page that can be answered. */
export interface Page<Row> {
  /** The row with which it ends; null without one. */
  readonly last: Row | null;
  /** The same when others come after it, which is where the next page goes on; null on the last page. */
  readonly next: Row | null;
  /** The response that carries its items in this field. */
  answer<Response extends DescMessage>(
    response: Response,
    field: string & keyof MessageShape<Response>,
    rest: MessageInitShape<Response>,
  ): MessageShape<Response>;
  /** The same items, the last one first. */
  reversed(): Page<Row>;
}

/**
 * Make a page: as many rows as its limit and its bytes allow for. The items are encoded one by one, with pauses in
 * which others have their turn; the first item is in it whatever its size. Rejects with the reason of the call's
 * signal.
 */
export async function readPage<Row, Item extends DescMessage>(
  { requestHeader, signal }: PagedCall,
  { rows, limit, item, toMessage }: PageOptions<Row, Item>,
): Promise<Page<Row>> {
  const room = new PageRoom({ items: limit, bytes: PAGE_BYTES });
  const isBinary = isBinaryCall(requestHeader);
  const items = new EncodedItems(item);
  let bytesOfTurn = BYTES_A_TURN;
  let last: Row | null = null;
  for await (const piece of rows) {
    for (const row of piece) {
      if (bytesOfTurn >= BYTES_A_TURN) {
        bytesOfTurn = 0;
        await nextTurn();
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
 * Read rows in order, some at a time, one more than `limit` at most: that one tells whether there is another page.
 *
 * @param read the next rows after a cursor, at most `count`; fewer mean that the end is reached.
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
