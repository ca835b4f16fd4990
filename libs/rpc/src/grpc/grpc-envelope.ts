import { constants, type Http2ServerRequest, type OutgoingHttpHeaders, type ServerHttp2Stream } from "node:http2";
import type { DescMessage, Message } from "@bufbuild/protobuf";
import { refuse } from "@rollcall/errors";
import { encodeFast } from "@rollcall/wire";
import { checkSize, tooLarge } from "../calls/message-parts.ts";
import { MESSAGE_LIMIT_BYTES } from "../connect/server-options.ts";
import type { Status } from "./call-journal.ts";

/** A flag and the length come before each message. */
export const HEADER_BYTES = 5;
const COMPRESSED = 1;

/**
 * The one message of a gRPC request. Rejects with MESSAGE_TOO_LARGE, with MALFORMED_MESSAGE when there is none, more
 * than one, or one cut short, and with CANCELLED when the caller goes away before it has come.
 */
export async function readEnvelope({ stream }: Http2ServerRequest, mostBytes: number): Promise<Uint8Array> {
  const bytes = await readAll(stream, mostBytes);
  if (bytes.byteLength < HEADER_BYTES) {
    throw refuse("MALFORMED_MESSAGE", "the request has no message");
  }
  const length = bytes.readUInt32BE(1);
  checkSize(length, mostBytes);
  if (bytes[0] === COMPRESSED) {
    throw refuse("MALFORMED_MESSAGE", "the message is compressed, and no encoding was named");
  }
  if (length !== bytes.byteLength - HEADER_BYTES) {
    throw refuse("MALFORMED_MESSAGE", "the request is not exactly one message");
  }
  return bytes.subarray(HEADER_BYTES);
}

/** Listeners rather than an iterator: of a small call, the iterator would be a good part of the cost. */
function readAll(stream: ServerHttp2Stream, mostBytes: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let size = 0;
    const settle = (end: () => void) => {
      stream.off("data", onData).off("end", onEnd).off("close", onClose);
      end();
    };
    const onData = (chunk: Buffer) => {
      chunks.push(chunk);
      size += chunk.byteLength;
      // What does not fit is refused before the rest of it has come.
      if (size > HEADER_BYTES + mostBytes) settle(() => reject(tooLarge(mostBytes)));
    };
    const onEnd = () => {
      // A reset stream ends as if it were complete.
      if (stream.rstCode !== constants.NGHTTP2_NO_ERROR || stream.aborted) onClose();
      else settle(() => resolve(Buffer.concat(chunks)));
    };
    const onClose = () => settle(() => reject(refuse("CANCELLED", "the caller went away")));
    stream.on("data", onData).on("end", onEnd).on("close", onClose);
  });
}

/** Of messages that many calls send. */
const framed = new WeakMap<Message, Uint8Array>();

/**
 * Have plain gRPC send a message by these bytes, which are framed once for all calls that send it. It must not change
 * any more.
 */
export function sendAsEncoded(message: Message, bytes: Uint8Array): void {
  framed.set(message, writeEnvelope(bytes));
}

/** A message as gRPC frames it. */
export function frameOf(schema: DescMessage, message: Message): Uint8Array {
  return framed.get(message) ?? writeEnvelope(encodeFast(schema, message));
}

/** A message behind its flag and length. */
export function writeEnvelope(message: Uint8Array): Buffer {
  const bytes = Buffer.allocUnsafe(HEADER_BYTES + message.byteLength);
  bytes.writeUInt8(0, 0);
  bytes.writeUInt32BE(message.byteLength, 1);
  bytes.set(message, HEADER_BYTES);
  return bytes;
}

/** The headers with which the answer to a call begins. */
export const ANSWER_HEADERS: OutgoingHttpHeaders = Object.freeze({
  ":status": 200,
  "content-type": "application/grpc+proto",
  "grpc-accept-encoding": "identity",
});

/** A status as the trailers of a call. */
export function trailersOf({ code, details, metadata }: Status): OutgoingHttpHeaders {
  return {
    "grpc-status": String(code),
    "grpc-message": encodeURI(details ?? ""),
    ...metadata?.toHttp2Headers(),
  };
}

/** Answer a call with nothing but its status. The stream must be open. */
export function answerWithStatus(stream: ServerHttp2Stream, status: Status): void {
  stream.respond({ ...ANSWER_HEADERS, ...trailersOf(status) }, { endStream: true });
}

let sentHeaders: symbol | null | undefined;

/**
 * Node.js stores the sent headers, some 500 bytes, with each stream for its `sentHeaders` property, which is not used
 * here. All calls share one object instead. Does nothing on a version of Node.js that stores them under another symbol.
 */
export function forgetSentHeaders(stream: ServerHttp2Stream): void {
  if (sentHeaders === undefined) {
    const named = Object.getOwnPropertySymbols(stream).find(({ description }) => description === "sent-headers");
    sentHeaders = named ?? null;
  }
  if (sentHeaders !== null) Object.assign(stream, { [sentHeaders]: ANSWER_HEADERS });
}

const FIRST_BYTES = 256;

/**
 * Gathers a message that comes in pieces, however small they are. Its buffer doubles up to the size of the largest
 * message.
 */
export class PartialMessage {
  #bytes = Buffer.allocUnsafeSlow(FIRST_BYTES);
  #length = 0;

  /** Add bytes, and return all that have come. */
  add(more: Uint8Array): Buffer {
    const length = this.#length + more.byteLength;
    if (length > this.#bytes.byteLength) {
      const doubled = Math.min(2 * this.#bytes.byteLength, HEADER_BYTES + MESSAGE_LIMIT_BYTES);
      const larger = Buffer.allocUnsafeSlow(Math.max(length, doubled));
      larger.set(this.#bytes.subarray(0, this.#length));
      this.#bytes = larger;
    }
    this.#bytes.set(more, this.#length);
    this.#length = length;
    return this.#bytes.subarray(0, length);
  }
}
