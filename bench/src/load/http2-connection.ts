import type { Socket } from "node:net";
import {
  clientPreface,
  FLAG_ACK,
  FLAG_END_STREAM,
  FRAME_HEADER_BYTES,
  FRAME_TYPE,
  frame,
  headersFrame,
} from "./http2-frames.ts";
import { MessageReader } from "./message-reader.ts";
import { type ConnectTarget, openSocket } from "./open-socket.ts";

const SETTINGS_ACK = frame(FRAME_TYPE.settings, FLAG_ACK, 0, Buffer.alloc(0));

/** Callbacks of a connection. */
export interface Http2Listener {
  /** Receives one gRPC message. The bytes are valid only during the call. */
  onMessage(streamId: number, message: Buffer): void;
  /** Called when the server has ended or reset a stream. */
  onStreamEnd(streamId: number): void;
  /** Called when the connection, and with it every stream, is closed. */
  onClose(): void;
}

/**
 * The client's side of one HTTP/2 connection over a plain socket. It is minimal, because a load generator must cost
 * less than the system under test. It does not read headers. It does not track the server's receive windows, so its
 * user must keep less than 64 KiB unacknowledged.
 */
export class Http2Connection {
  readonly #socket: Socket;
  readonly #listener: Http2Listener;
  readonly #readers = new Map<number, MessageReader>();
  #rest: Buffer | null = null;
  #nextStreamId = 1;
  #ready: () => void = () => {};
  /** Resolves when the server's settings have arrived, so that the server accepts calls. */
  readonly ready: Promise<void>;

  constructor(target: ConnectTarget, listener: Http2Listener) {
    this.#listener = listener;
    this.#socket = openSocket(target);
    this.#socket.setNoDelay(true);
    this.ready = new Promise((resolve, reject) => {
      this.#ready = resolve;
      this.#socket.once("error", reject);
    });
    this.#socket.on("error", () => {}); // "close" follows and notifies the listener.
    this.#socket.on("connect", () => this.#socket.write(clientPreface()));
    this.#socket.on("data", (chunk: Buffer) => this.#read(chunk));
    this.#socket.on("close", () => listener.onClose());
  }

  /** Opens a gRPC call and returns the id of its stream. Write the messages of the call with `write`. */
  openStream(path: string, headers?: Readonly<Record<string, string>>): number {
    const streamId = this.#nextStreamId;
    this.#nextStreamId += 2;
    this.#readers.set(streamId, new MessageReader());
    this.#socket.write(headersFrame(streamId, path, headers));
    return streamId;
  }

  /** Writes an encoded frame. */
  write(encoded: Buffer): void {
    this.#socket.write(encoded);
  }

  close(): void {
    this.#socket.destroy();
  }

  #read(chunk: Buffer): void {
    const bytes = this.#rest === null ? chunk : Buffer.concat([this.#rest, chunk]);
    let offset = 0;
    while (bytes.length - offset >= FRAME_HEADER_BYTES) {
      const end = offset + FRAME_HEADER_BYTES + bytes.readUIntBE(offset, 3);
      if (end > bytes.length) break;
      this.#take(bytes, offset, end);
      offset = end;
    }
    this.#rest = offset === bytes.length ? null : Buffer.from(bytes.subarray(offset));
  }

  #take(bytes: Buffer, start: number, end: number): void {
    const type = bytes[start + 3];
    const flags = bytes[start + 4] ?? 0;
    const streamId = bytes.readUInt32BE(start + 5);
    const payload = bytes.subarray(start + FRAME_HEADER_BYTES, end);
    if (type === FRAME_TYPE.data) {
      this.#readers.get(streamId)?.push(payload, (message) => this.#listener.onMessage(streamId, message));
    } else if (type === FRAME_TYPE.settings && (flags & FLAG_ACK) === 0) {
      this.#socket.write(SETTINGS_ACK);
      this.#ready();
    } else if (type === FRAME_TYPE.ping && (flags & FLAG_ACK) === 0) {
      this.#socket.write(frame(FRAME_TYPE.ping, FLAG_ACK, 0, payload));
    }
    const ends = type === FRAME_TYPE.data || type === FRAME_TYPE.headers;
    if (type === FRAME_TYPE.resetStream || (ends && (flags & FLAG_END_STREAM) !== 0)) {
      if (this.#readers.delete(streamId)) this.#listener.onStreamEnd(streamId);
    }
  }
}
