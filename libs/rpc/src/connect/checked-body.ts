import { checkParts } from "../calls/message-parts.ts";
import { loopBudget } from "../limits/loop-budget.ts";
import { MESSAGE_LIMIT_BYTES } from "./server-options.ts";

/** How messages lie in a body: one that is the body, several behind a header each, or packed as a whole. */
export type Framing = "whole" | "enveloped" | "packed";

const HEADER_BYTES = 5;
const PACKED = 1;

/** How messages lie in the body of a request with these headers. */
export function framingOf(headers: {
  readonly "content-type"?: string | undefined;
  readonly "content-encoding"?: string | string[] | undefined;
}): Framing {
  const { "content-type": type = "", "content-encoding": encoding = "identity" } = headers;
  if (/^application\/(grpc|connect\+)/i.test(type)) return "enveloped";
  return encoding === "identity" ? "whole" : "packed";
}

/**
 * The same body, each of its messages in one piece and checked to be decoded within a moment. Rejects with
 * MESSAGE_TOO_LARGE. What is too long for a message is passed on as it comes, to whoever refuses it; what is packed is
 * checked where it is unpacked.
 *
 * @param source of the body: an address.
 */
export function checkedBody(
  body: AsyncIterable<Uint8Array>,
  framing: Framing,
  source: string,
): AsyncIterable<Uint8Array> {
  switch (framing) {
    case "whole":
      return whole(body, source);
    case "enveloped":
      return enveloped(body, source);
    case "packed":
      return body;
  }
}

async function* whole(body: AsyncIterable<Uint8Array>, source: string): AsyncIterable<Uint8Array> {
  const pieces = new Pieces();
  for await (const chunk of body) {
    pieces.add(chunk);
    if (pieces.size > MESSAGE_LIMIT_BYTES) yield pieces.takeAll();
  }
  if (pieces.size === 0) return;
  const message = pieces.takeAll();
  await loopBudget.do(source, () => checkParts(message));
  yield message;
}

async function* enveloped(body: AsyncIterable<Uint8Array>, source: string): AsyncIterable<Uint8Array> {
  const pieces = new Pieces();
  for await (const chunk of body) {
    pieces.add(chunk);
    for (let size = envelopeSize(pieces); size > 0; size = envelopeSize(pieces)) {
      const message = pieces.take(size);
      const isPacked = ((message[0] ?? 0) & PACKED) !== 0;
      if (!isPacked) await loopBudget.do(source, () => checkParts(message.subarray(HEADER_BYTES)));
      yield message;
    }
    if (pieces.size > HEADER_BYTES + MESSAGE_LIMIT_BYTES) yield pieces.takeAll();
  }
  if (pieces.size > 0) yield pieces.takeAll();
}

/** The size of the first envelope with its header; 0 while it has not come whole. */
function envelopeSize(pieces: Pieces): number {
  if (pieces.size < HEADER_BYTES) return 0;
  const size = HEADER_BYTES + pieces.peek(HEADER_BYTES).readUInt32BE(1);
  return size <= pieces.size ? size : 0;
}

/** Bytes in the pieces in which they came. */
class Pieces {
  #pieces: Uint8Array[] = [];
  #size = 0;

  get size(): number {
    return this.#size;
  }

  add(piece: Uint8Array): void {
    this.#pieces.push(piece);
    this.#size += piece.byteLength;
  }

  /** The first bytes, which stay; there must be so many. */
  peek(count: number): Buffer {
    const [first] = this.#pieces;
    if (first !== undefined && first.byteLength >= count) {
      return Buffer.from(first.buffer, first.byteOffset, count);
    }
    return this.#join().subarray(0, count);
  }

  take(count: number): Uint8Array {
    const all = this.#join();
    this.#pieces = count < all.byteLength ? [all.subarray(count)] : [];
    this.#size -= count;
    return all.subarray(0, count);
  }

  takeAll(): Uint8Array {
    return this.take(this.#size);
  }

  #join(): Buffer {
    const [only] = this.#pieces;
    const all =
      this.#pieces.length === 1 && only !== undefined
        ? Buffer.from(only.buffer, only.byteOffset, only.byteLength)
        : Buffer.concat(this.#pieces);
    this.#pieces = [all];
    return all;
  }
}
