import { constants, type Http2ServerRequest, type OutgoingHttpHeaders, type ServerHttp2Stream } from "node:http2";
import type { DescMessage, Message } from "@bufbuild/protobuf";
import type { ConnectError } from "@connectrpc/connect";
import { setTrailerStatus } from "@connectrpc/connect/protocol-grpc";
import { refuse } from "@rollcall/errors";
import { errorCode } from "@rollcall/process";
import { encodeFast } from "@rollcall/wire";
import type { LargeTurn } from "../calls/large-turn.ts";
import {
  checkSize,
  compressionNotNamed,
  LARGE_BYTES,
  noMessage,
  severalMessages,
  tooLarge,
} from "../calls/message-parts.ts";
import { MESSAGE_LIMIT_BYTES } from "../server-options.ts";

/** The size of a message's header in bytes: a flag and the message's length. */
export const HEADER_BYTES = 5;
const COMPRESSED = 1;

/**
 * Read the only message of a gRPC request. Rejects with MESSAGE_TOO_LARGE, with ONE_MESSAGE_REQUIRED if there is no
 * message or more than one, with COMPRESSION_NOT_NAMED if it is compressed, with MALFORMED_MESSAGE if it is truncated,
 * and with CANCELLED if the caller disconnects before the message has arrived. A large message waits for its turn,
 * which the caller of this function must end.
 */
export async function readEnvelope(
  { stream }: Http2ServerRequest,
  mostBytes: number,
  turn: LargeTurn,
): Promise<Uint8Array> {
  const bytes = await readAll(stream, mostBytes, turn);
  if (bytes.byteLength === 0) throw noMessage();
  if (bytes.byteLength < HEADER_BYTES) throw truncated();
  const length = bytes.readUInt32BE(1);
  checkSize(length, mostBytes);
  if (bytes[0] === COMPRESSED) throw compressionNotNamed();
  const rest = bytes.byteLength - HEADER_BYTES - length;
  if (rest < 0) throw truncated();
  if (rest > 0) throw severalMessages();
  return bytes.subarray(HEADER_BYTES);
}

function truncated(): Error {
  return refuse("MALFORMED_MESSAGE", "the message is truncated");
}

/** Read a whole stream. This uses listeners, because an iterator would be a large part of the cost of a small call. */
function readAll(stream: ServerHttp2Stream, mostBytes: number, turn: LargeTurn): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let size = 0;
    let isLarge = false;
    const settle = (end: () => void) => {
      stream.off("data", onData).off("end", onEnd).off("close", onClose);
      end();
    };
    const onData = (chunk: Buffer) => {
      const declared = size === 0 && chunk.byteLength >= HEADER_BYTES ? HEADER_BYTES + chunk.readUInt32BE(1) : 0;
      chunks.push(chunk);
      size += chunk.byteLength;
      const expected = Math.max(declared, size);
      // Refuse an oversized message before it has arrived, so that many of them do not fill the memory.
      if (expected > HEADER_BYTES + mostBytes) settle(() => reject(tooLarge(mostBytes)));
      else if (expected > LARGE_BYTES && !isLarge) {
        isLarge = true;
        stream.pause();
        turn.begin().then(
          () => stream.resume(),
          (error: unknown) => settle(() => reject(error)),
        );
      }
    };
    const onEnd = () => {
      // Check for a reset, because the input of a reset stream ends as if the input were complete.
      if (stream.rstCode !== constants.NGHTTP2_NO_ERROR || stream.aborted) onClose();
      else settle(() => resolve(Buffer.concat(chunks)));
    };
    const onClose = () => settle(() => reject(refuse("CANCELLED", "the caller disconnected")));
    stream.on("data", onData).on("end", onEnd).on("close", onClose);
    // An empty stream ends without a reader.
    if (stream.readableEnded) onEnd();
    else if (stream.closed) onClose();
  });
}

/** Frames of messages that many calls send, keyed by message. */
const framed = new WeakMap<Message, Uint8Array>();

/**
 * Send these bytes for a message over plain gRPC. They are framed once for all calls that send the message. The message
 * must not change afterwards.
 */
export function sendAsEncoded(message: Message, bytes: Uint8Array): void {
  framed.set(message, writeEnvelope(bytes));
}

/** Encode a message in its gRPC frame. */
export function frameOf(schema: DescMessage, message: Message): Uint8Array {
  return framed.get(message) ?? writeEnvelope(encodeFast(schema, message));
}

/** Put a flag and the length before an encoded message. */
export function writeEnvelope(message: Uint8Array): Buffer {
  const bytes = Buffer.allocUnsafe(HEADER_BYTES + message.byteLength);
  bytes.writeUInt8(0, 0);
  bytes.writeUInt32BE(message.byteLength, 1);
  bytes.set(message, HEADER_BYTES);
  return bytes;
}

/** The initial headers of a response. */
export const ANSWER_HEADERS: OutgoingHttpHeaders = Object.freeze({
  ":status": 200,
  "content-type": "application/grpc+proto",
  "grpc-accept-encoding": "identity",
});

/** The trailers that carry a status, OK if the error is null, after other trailing metadata. */
export function trailersOf(error: ConnectError | null, metadata?: OutgoingHttpHeaders): OutgoingHttpHeaders {
  const trailers = { ...metadata, ...Object.fromEntries(setTrailerStatus(new Headers(), error ?? undefined)) };
  // Encode fewer characters than Connect does: grpc-js decodes only what encodeURI() encodes.
  if (error !== null) trailers["grpc-message"] = encodeURI(error.rawMessage);
  return trailers;
}

/** Answer a call with only trailers. The stream must be open. */
export function answerWithTrailers(stream: ServerHttp2Stream, trailers: OutgoingHttpHeaders): void {
  stream.respond({ ...ANSWER_HEADERS, ...trailers }, { endStream: true });
}

const BEGINNING = { waitForTrailers: true, sendDate: false };
/** Whether this version of Node.js takes headers as a list. The first versions of Node.js 22 do not. */
let takesLists = true;

/** Flatten headers to a list of names and values, for beginAnswer(). */
export function headerList(headers: Readonly<OutgoingHttpHeaders>): readonly string[] {
  return Object.freeze(Object.entries(headers).flat().map(String));
}

/**
 * Send the initial headers of a response. They are a list, because Node.js keeps a list as it is for as long as the
 * stream is open. Of an object, it keeps a copy of 300 bytes for each stream.
 */
export function beginAnswer(stream: ServerHttp2Stream, list: readonly string[]): void {
  if (takesLists) {
    try {
      stream.respond(list, BEGINNING);
      return;
    } catch (error) {
      if (errorCode(error) !== "ERR_INVALID_ARG_TYPE") throw error;
      takesLists = false;
    }
  }
  stream.respond(
    Object.fromEntries(list.flatMap((name, at) => (at % 2 === 0 ? [[name, list[at + 1]]] : []))),
    BEGINNING,
  );
}

const FIRST_BYTES = 256;

/** Collects a message that arrives in pieces of any size. The buffer doubles up to the size of the largest message. */
export class PartialMessage {
  #bytes = Buffer.allocUnsafeSlow(FIRST_BYTES);
  #length = 0;

  /** Add bytes, and return everything received so far. */
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
