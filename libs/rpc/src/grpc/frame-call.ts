import type { IncomingHttpHeaders, OutgoingHttpHeaders, ServerHttp2Stream } from "node:http2";
import type { ConnectError } from "@connectrpc/connect";
import { headerTimeout, parseTimeout } from "@connectrpc/connect/protocol-grpc";
import { describeError, mapError, reasonOf, refuse } from "@rollcall/errors";
import { addressOf, type ClientAddress, peerOf } from "../calls/client-address.ts";
import { compressionNotNamed, tooLarge } from "../calls/message-parts.ts";
import { held } from "../connections/connection.ts";
import type { CallAdmission, CallSlot } from "../limits/call-admission.ts";
import { MESSAGE_LIMIT_BYTES } from "../server-options.ts";
import type { CallJournal, JournaledCall } from "./call-journal.ts";
import {
  ANSWER_HEADERS,
  answerWithTrailers,
  beginAnswer,
  HEADER_BYTES,
  headerList,
  PartialMessage,
  trailersOf,
  writeEnvelope,
} from "./grpc-envelope.ts";

/** Receives the events of a call. */
export interface FrameReader<I> {
  /** A message has arrived. */
  onFrame(message: I): void;
  /** The peer has ended its half and will send nothing more. */
  onHalfClose(): void;
  /**
   * The call has ended. No events follow.
   *
   * @param error what the call ended with: null for status OK, CANCELLED if the peer has disconnected.
   */
  onGone(error: ConnectError | null): void;
}

/** Handles the calls of a method. */
export interface FrameHandler<I> {
  /** @param headers the headers of the request. A long call must not keep them. */
  open(call: FrameCall<I>, headers: IncomingHttpHeaders): FrameReader<I>;
}

/** A method, with the data that its calls share. */
export interface FrameMethod<I> {
  /** The name of the method, such as "rollcall.health.v1.HealthService/Heartbeat". */
  readonly name: string;
  /** Whether a call can have several messages in a direction. */
  readonly isStream: boolean;
  /** Limits the calls of the method; undefined if they are not limited here. */
  readonly admission: CallAdmission | undefined;
  readonly handler: FrameHandler<I>;
  /**
   * Decodes a message. A refusal that it throws ends the call with the refusal's reason, any other error with
   * MALFORMED_MESSAGE.
   */
  readonly decode: (bytes: Buffer) => I;
  readonly journal: CallJournal;
  readonly clientAddress: ClientAddress | undefined;
}

/** Number of unsent frames from which a peer counts as slow. Object streams in Node.js use the same value. */
const MOST_UNREAD = 16;
const COMPRESSED = 1;
const NOTHING = Buffer.alloc(0);
/** The longest timer of Node.js, 25 days. A call with a longer timeout has no limit. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** The headers of calls without initial metadata, which share them. */
const NO_METADATA = headerList(ANSWER_HEADERS);

/** The error of calls whose peers have disconnected. They share it, because many calls can end at the same moment. */
const DISCONNECTED = mapError(refuse("CANCELLED", "the caller disconnected"));

/**
 * A gRPC call directly on an HTTP/2 stream, without a promise or an iterator for each message. Flow control is left to
 * Node.js. All calls share their listeners, see below.
 */
export class FrameCall<I> implements JournaledCall {
  /** The caller's address as HOST:PORT, according to trusted proxies. */
  readonly peer: string;
  readonly startMs: number;
  hasEnded = false;
  readonly #method: FrameMethod<I>;
  readonly #stream: ServerHttp2Stream;
  #reader: FrameReader<I> | null = null;
  #partial: PartialMessage | null = null;
  #trailers: OutgoingHttpHeaders | null = null;
  #deadline: NodeJS.Timeout | null = null;
  #slot: CallSlot | null = null;
  #isPaused = false;
  /** Whether the peer has ended its half while the call was paused. */
  #endsPaused = false;
  #error: ConnectError | null = null;
  #unread = 0;
  #onAllRead: (() => void) | null = null;

  private constructor(method: FrameMethod<I>, stream: ServerHttp2Stream, headers: IncomingHttpHeaders) {
    this.#method = method;
    this.#stream = stream;
    this.peer = addressOf(peerOf(stream.session?.socket), headers, method.clientAddress);
    this.startMs = method.journal.nowMs();
  }

  /** Start to handle a call. Its stream must be open. */
  static open<I>(method: FrameMethod<I>, stream: ServerHttp2Stream, headers: IncomingHttpHeaders): void {
    const call = new FrameCall(method, stream, headers);
    (stream as Carrier)[CALL] = call as FrameCall<unknown>;
    stream.on("error", ignore).on("close", onClose).on("wantTrailers", onWantTrailers);
    call.#guard(() => {
      const { isStream, peer } = call;
      call.#slot = method.admission?.enter({ needs: "anyone", isStream, peer, authorization: null }) ?? null;
      method.journal.opened(call);
      call.#limit(headers[headerTimeout.toLowerCase()]);
      call.#reader = method.handler.open(call, headers);
    });
    stream.on("data", onData).on("end", onEnd);
  }

  get method(): string {
    return this.#method.name;
  }

  get isStream(): boolean {
    return this.#method.isStream;
  }

  /**
   * Report that the caller is identified. While it has a call, its connection does not count as anonymous, and is not
   * closed to make room.
   */
  identified(): void {
    const connection = held(this.#stream);
    connection?.owner.identified(connection);
  }

  /** Report bytes that the service has requested from the peer, so that they do not count as a flood. */
  explain(bytes: number): void {
    held(this.#stream)?.budget?.explain(bytes);
  }

  /** Number of frames that have not been sent yet. */
  get unread(): number {
    return this.#unread;
  }

  /** Send the initial metadata, unless it has been sent. By default, it is empty, and is sent with the first frame. */
  sendMetadata(metadata?: OutgoingHttpHeaders): void {
    if (this.hasEnded || this.#isLeft || this.#stream.headersSent) return;
    beginAnswer(this.#stream, metadata === undefined ? NO_METADATA : headerList({ ...metadata, ...ANSWER_HEADERS }));
  }

  /** Send a frame. Returns whether the peer reads fast enough. Frames after the status are dropped. */
  write(frame: Buffer): boolean {
    if (this.hasEnded || this.#isLeft) return true;
    if (!this.#stream.headersSent) this.sendMetadata();
    this.#unread += 1;
    this.#stream.write(writeEnvelope(frame), this.#onSent);
    return this.#unread < MOST_UNREAD;
  }

  /** Call a function once all frames have been sent. */
  onceAllRead(listener: () => void): void {
    this.#onAllRead = listener;
  }

  /** Read no frames until resume(). Those that have arrived are kept, and flow control holds back the others. */
  pause(): void {
    this.#isPaused = true;
    this.#stream.pause();
  }

  /** Read frames again. The first arrives after the current function has returned. */
  resume(): void {
    process.nextTick(() => {
      this.#isPaused = false;
      this.received(NOTHING);
      if (this.#isPaused) return;
      if (this.#endsPaused) this.halfClosed();
      else this.#stream.resume();
    });
  }

  /**
   * End the call after all written frames.
   *
   * @param error see mapError(); status OK if it is undefined.
   * @param metadata more trailing metadata.
   */
  end(error?: unknown, metadata?: OutgoingHttpHeaders): void {
    // Send no status to a peer that has cut the call. The end of the stream will notify the reader.
    if (this.hasEnded || this.#isLeft) return;
    this.#error = error === undefined ? null : mapError(error);
    this.#method.journal.ended(this, this.#error);
    this.#settle();
    const trailers = trailersOf(this.#error, metadata);
    if (this.#stream.headersSent) {
      this.#trailers = trailers;
      this.#stream.end();
    } else {
      answerWithTrailers(this.#stream, trailers);
      this.#leave();
    }
  }

  get #isLeft(): boolean {
    return this.#stream.closed || this.#stream.destroyed;
  }

  #limit(header: string | string[] | undefined): void {
    if (header === undefined) return;
    const { timeoutMs, error } = parseTimeout(String(header), Number.POSITIVE_INFINITY);
    // Do not include the header in the message, because it can be long.
    if (error !== undefined) throw refuse("INVALID_REQUEST", `${headerTimeout} is not a valid timeout`);
    if (timeoutMs === undefined || timeoutMs > LONGEST_TIMER_MS) return;
    const message = `the call took longer than its caller's timeout of ${timeoutMs} ms`;
    const end = () => this.end(refuse("DEADLINE_EXCEEDED", message));
    this.#deadline = setTimeout(end, timeoutMs);
  }

  /** Read all complete frames from the received bytes. */
  received(chunk: Buffer): void {
    const bytes = this.#partial === null ? chunk : this.#partial.add(chunk);
    let at = 0;
    while (!this.hasEnded && !this.#isPaused && bytes.byteLength - at >= HEADER_BYTES) {
      const length = bytes.readUInt32BE(at + 1);
      if (length > MESSAGE_LIMIT_BYTES) {
        this.end(tooLarge(MESSAGE_LIMIT_BYTES));
        return;
      }
      const end = at + HEADER_BYTES + length;
      if (end > bytes.byteLength) break;
      this.#read(bytes[at] === COMPRESSED, bytes.subarray(at + HEADER_BYTES, end));
      at = end;
    }
    if (this.hasEnded || at === bytes.byteLength) this.#partial = null;
    else if (this.#partial === null || at > 0) this.#keep(bytes.subarray(at));
  }

  #keep(rest: Buffer): void {
    this.#partial = new PartialMessage();
    this.#partial.add(rest);
  }

  #read(isCompressed: boolean, bytes: Buffer): void {
    try {
      if (isCompressed) throw compressionNotNamed();
      this.#reader?.onFrame(this.#decode(bytes));
    } catch (error) {
      this.#fail(error);
    }
  }

  #decode(bytes: Buffer): I {
    try {
      return this.#method.decode(bytes);
    } catch (cause) {
      if (reasonOf(cause) !== undefined) throw cause;
      throw refuse("MALFORMED_MESSAGE", "the message cannot be decoded", { cause });
    }
  }

  /**
   * Called when the stream's input ends. Does nothing if the peer has reset the call, or if the call was cut here,
   * because the input ends in these cases too.
   */
  halfClosed(): void {
    if (this.hasEnded || this.#isLeft) return;
    this.#endsPaused = this.#isPaused;
    if (this.#isPaused) return;
    if (this.#partial !== null) {
      this.end(refuse("MALFORMED_MESSAGE", "the last message is truncated"));
      return;
    }
    this.#guard(() => this.#reader?.onHalfClose());
  }

  /** Send the status, after everything else has been sent. */
  sendTrailers(): void {
    this.#stream.sendTrailers(this.#trailers ?? trailersOf(null));
    this.#leave();
  }

  /** Called when the stream has closed. */
  closed(): void {
    if (!this.hasEnded) this.#error = DISCONNECTED;
    this.#method.journal.over(this);
    this.#settle();
    this.#leave();
  }

  /** Call a handler. If the handler throws, end its call and no other. */
  #guard(act: () => void): void {
    try {
      act();
    } catch (error) {
      this.#fail(error);
    }
  }

  #fail(error: unknown): void {
    const mapped = mapError(error);
    if (describeError(mapped).reason === "INTERNAL") this.#method.journal.failed(this, error);
    this.end(mapped);
  }

  #settle(): void {
    this.#partial = null;
    // Discard what the peer sends after the end. Otherwise a paused stream would never close.
    if (this.#isPaused) this.resume();
    this.#slot?.leave();
    this.#slot = null;
    if (this.#deadline !== null) clearTimeout(this.#deadline);
    this.#deadline = null;
  }

  /**
   * Notify the reader now, because a peer can leave its half open for a long time. If the reader is being called,
   * notify it afterwards.
   */
  #leave(): void {
    process.nextTick(tellGone, this);
  }

  /** Notify the reader that the call has ended, once the function that ended it has returned. */
  tellGone(): void {
    const reader = this.#reader;
    this.#reader = null;
    this.#guard(() => reader?.onGone(this.#error));
  }

  readonly #onSent = (error?: Error | null): void => {
    this.#unread -= 1;
    if (this.#unread > 0 || (error !== undefined && error !== null)) return;
    const listener = this.#onAllRead;
    this.#onAllRead = null;
    if (listener !== null) this.#guard(listener);
  };
}

const CALL = Symbol("call");

type Carrier = ServerHttp2Stream & { [CALL]?: FrameCall<unknown> };

// All calls share these listeners, whose `this` is the stream: closures would take a third of the memory of a call.

function onData(this: Carrier, chunk: Buffer): void {
  this[CALL]?.received(chunk);
}

function onEnd(this: Carrier): void {
  this[CALL]?.halfClosed();
}

function onWantTrailers(this: Carrier): void {
  this[CALL]?.sendTrailers();
}

function onClose(this: Carrier): void {
  this[CALL]?.closed();
}

function tellGone(call: FrameCall<unknown>): void {
  call.tellGone();
}

/** Ignores an error of the stream: the stream closes anyway, which ends the call. */
function ignore(): void {}
