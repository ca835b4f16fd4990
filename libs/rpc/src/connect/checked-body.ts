import { encodeEnvelope } from "@connectrpc/connect/protocol";
import {
  type BodyCheck,
  checkParts,
  checkSize,
  compressionNotNamed,
  type MessageFormat,
  noMessage,
  severalMessages,
} from "../calls/message-parts.ts";
import { loopBudget } from "../limits/loop-budget.ts";
import { encodingHeaders, type Unpack, unpackerOf } from "./request-compression.ts";

/** How messages are encoded in a body. */
export interface BodyShape {
  /** How messages are separated. The body either is one message, or contains messages that each follow a header. */
  readonly framing: "whole" | "enveloped";
  readonly format: MessageFormat;
  /** Decompresses messages; null if they are not compressed. */
  readonly unpack: Unpack | null;
}

/** How to check the messages of a body. */
export interface MessagesCheck extends BodyCheck {
  /** Whether the body can have any number of messages. Otherwise it must have exactly one. */
  readonly isStream: boolean;
}

const HEADER_BYTES = 5;
const PACKED = 1;

/** Find how messages are encoded in the body of a request with these headers. */
export function bodyShapeOf(headers: Headers): BodyShape {
  const type = headers.get("content-type") ?? "";
  const format = /^application\/(\S+\+)?json\b/i.test(type) ? "json" : "binary";
  const isGrpc = /^application\/grpc/i.test(type);
  const isConnectStream = /^application\/connect\+/i.test(type);
  const unpack = unpackerOf(headers.get(encodingHeaders(type).given) ?? "");
  return { framing: isGrpc || isConnectStream ? "enveloped" : "whole", format, unpack };
}

/**
 * Return the same body with each message in one piece, decompressed, and checked to be quick to decode. Rejects with
 * MESSAGE_TOO_LARGE, MALFORMED_MESSAGE, COMPRESSION_NOT_NAMED or ONE_MESSAGE_REQUIRED.
 */
export function checkedBody(
  body: AsyncIterable<Uint8Array>,
  shape: BodyShape,
  check: MessagesCheck,
): AsyncIterable<Uint8Array> {
  return shape.framing === "whole" ? whole(body, shape, check) : enveloped(body, shape, check);
}

async function* whole(body: AsyncIterable<Uint8Array>, shape: BodyShape, check: BodyCheck): AsyncIterable<Uint8Array> {
  const pieces = new Pieces();
  for await (const chunk of body) {
    pieces.add(chunk);
    checkSize(pieces.size, check.mostBytes);
  }
  if (pieces.size === 0) return;
  const bytes = pieces.takeAll();
  const message = shape.unpack === null ? bytes : await shape.unpack(bytes);
  checkSize(message.length, check.mostBytes);
  await loopBudget.do(check.source, () => checkParts(check.schema, message, shape.format));
  yield message;
}

async function* enveloped(
  body: AsyncIterable<Uint8Array>,
  shape: BodyShape,
  check: MessagesCheck,
): AsyncIterable<Uint8Array> {
  const pieces = new Pieces();
  let only: Uint8Array | null = null;
  for await (const chunk of body) {
    pieces.add(chunk);
    for (let size = declaredSize(pieces); size > 0 && size <= pieces.size; size = declaredSize(pieces)) {
      if (only !== null) throw severalMessages();
      const envelope = await checkedEnvelope(pieces.take(size), shape, check);
      if (check.isStream) yield envelope;
      // Keep a message that must be the only one until the body has ended, so that it has no effect if more follow.
      else only = envelope;
    }
    // Check the declared size, so that an oversized message is refused before it has arrived.
    checkSize(declaredSize(pieces) - HEADER_BYTES, check.mostBytes);
  }
  if (only !== null) yield only;
  if (pieces.size > 0) yield pieces.takeAll();
  else if (only === null && !check.isStream) throw noMessage();
}

/** A body with one empty message, to use instead of a body that must not be decoded. */
export function emptyBody({ framing, format }: BodyShape): readonly Uint8Array[] {
  const message = Buffer.from(format === "json" ? "{}" : "");
  if (framing === "enveloped") return [encodeEnvelope(0, message)];
  // Return no chunks for an empty binary message, because Connect expects no body.
  return message.length === 0 ? [] : [message];
}

/** Check one message of a body with headers before its messages. */
async function checkedEnvelope(
  envelope: Uint8Array,
  { format, unpack }: BodyShape,
  { schema, source, mostBytes }: BodyCheck,
): Promise<Uint8Array> {
  const [flags = 0] = envelope;
  const isPacked = (flags & PACKED) !== 0;
  if (isPacked && unpack === null) throw compressionNotNamed();
  const bytes = envelope.subarray(HEADER_BYTES);
  const message = isPacked && unpack !== null ? await unpack(bytes) : bytes;
  checkSize(message.length, mostBytes);
  await loopBudget.do(source, () => checkParts(schema, message, format));
  return isPacked ? encodeEnvelope(flags & ~PACKED, message) : envelope;
}

/** The size of the first envelope including its header; 0 until the header has arrived. */
function declaredSize(pieces: Pieces): number {
  return pieces.size < HEADER_BYTES ? 0 : HEADER_BYTES + pieces.peek(HEADER_BYTES).readUInt32BE(1);
}

/** Bytes in pieces, as they arrived. */
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

  /** Read the first `count` bytes without consuming them. At least `count` bytes must be available. */
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
