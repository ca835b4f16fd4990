import type { IncomingHttpHeaders, OutgoingHttpHeaders, ServerHttp2Stream } from "node:http2";
import { headerTimeout, parseTimeout } from "@connectrpc/connect/protocol-grpc";
import { status as GrpcCode } from "@grpc/grpc-js";
import { describeError, mapError, reasonOf, refuse } from "@rollcall/errors";
import { addressOf, type ClientAddress } from "../calls/client-address.ts";
import { tooLarge } from "../calls/message-parts.ts";
import { MESSAGE_LIMIT_BYTES } from "../connect/server-options.ts";
import { grpcPeerOf } from "../connections/connection.ts";
import { type CallJournal, completeStatus, type JournaledCall, type Status } from "./call-journal.ts";
import {
  ANSWER_HEADERS,
  answerWithStatus,
  forgetSentHeaders,
  HEADER_BYTES,
  PartialMessage,
  trailersOf,
  writeEnvelope,
} from "./grpc-envelope.ts";
import { toGrpcStatus } from "./grpc-error.ts";

/** Receives what happens to a call. */
export interface FrameReader<I> {
  /** A message came. */
  onFrame(message: I): void;
  /** The peer will send nothing more. */
  onHalfClose(): void;
  /** The call is over, in whatever way; nothing is told after that. */
  onGone(): void;
}

/** Takes a call whose messages both ways are frames of one long stream. */
export interface FrameHandler<I> {
  open(call: FrameCall<I>): FrameReader<I>;
}

/** A method of two streams, and what its calls share. */
export interface FrameMethod<I> {
  /** "rollcall.health.v1.HealthService/Heartbeat". */
  readonly name: string;
  readonly handler: FrameHandler<I>;
  /** A refusal that it throws ends the call with its reason, anything else with MALFORMED_MESSAGE. */
  readonly decode: (bytes: Buffer) => I;
  readonly journal: CallJournal;
  readonly clientAddress: ClientAddress | undefined;
}

/** As many frames may wait to be sent before a peer counts as behind; as of Node.js' streams of objects. */
const MOST_UNREAD = 16;
const COMPRESSED = 1;
/** As long as a timer of Node.js can be: no limit for a call of 25 days. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

const OK: Status = { code: GrpcCode.OK, details: "OK", metadata: null };
const WITH_TRAILERS = { waitForTrailers: true };

/**
 * One call of two streams, on the stream of HTTP/2 itself: what grpc-js makes of it costs as much memory as all else
 * that is kept of an agent's call, and each message twice the time. Flow control is that of Node.js. Its listeners are
 * shared by all calls, see below.
 */
export class FrameCall<I> implements JournaledCall {
  /** HOST:PORT that it comes from, by what trusted proxies say. */
  readonly peer: string;
  readonly startMs: number;
  hasEnded = false;
  readonly #method: FrameMethod<I>;
  readonly #stream: ServerHttp2Stream;
  #reader: FrameReader<I> | null = null;
  #partial: PartialMessage | null = null;
  #trailers: OutgoingHttpHeaders | null = null;
  #deadline: NodeJS.Timeout | null = null;
  #unread = 0;
  #onAllRead: (() => void) | null = null;

  private constructor(method: FrameMethod<I>, stream: ServerHttp2Stream, headers: IncomingHttpHeaders) {
    this.#method = method;
    this.#stream = stream;
    this.peer = addressOf(this.getPeer(), headers, method.clientAddress);
    this.startMs = method.journal.nowMs();
  }

  /** Take a call. Its stream must be open. */
  static open<I>(method: FrameMethod<I>, stream: ServerHttp2Stream, headers: IncomingHttpHeaders): void {
    const call = new FrameCall(method, stream, headers);
    method.journal.opened(call);
    (stream as Carrier)[CALL] = call as FrameCall<unknown>;
    stream.on("error", ignore).on("close", onClose).on("wantTrailers", onWantTrailers);
    call.#guard(() => {
      call.#limit(headers[headerTimeout.toLowerCase()]);
      call.#reader = method.handler.open(call);
    });
    stream.on("data", onData).on("end", onEnd);
  }

  get method(): string {
    return this.#method.name;
  }

  get isStream(): boolean {
    return true;
  }

  /** HOST:PORT of the other end of the connection. */
  getPeer(): string {
    const socket = this.#stream.session?.socket;
    return socket?.remoteAddress === undefined ? "unknown" : grpcPeerOf(socket);
  }

  /** How many frames wait to be sent. */
  get unread(): number {
    return this.#unread;
  }

  /** Send a frame. Returns whether the peer keeps up. One after the status is left out. */
  write(frame: Buffer): boolean {
    if (this.hasEnded || this.#isLeft) return true;
    if (!this.#stream.headersSent) {
      this.#stream.respond(ANSWER_HEADERS, WITH_TRAILERS);
      forgetSentHeaders(this.#stream);
    }
    this.#unread += 1;
    this.#stream.write(writeEnvelope(frame), this.#onSent);
    return this.#unread < MOST_UNREAD;
  }

  /** Have a function called once nothing waits to be sent any more. */
  onceAllRead(listener: () => void): void {
    this.#onAllRead = listener;
  }

  /** End the call, with status OK where nothing else is said, after what was written. */
  end(status: Status = OK): void {
    // What is left has no status any more, and its end tells the reader.
    if (this.hasEnded || this.#isLeft) return;
    const completed = completeStatus(status);
    this.#method.journal.ended(this, completed);
    this.#settle();
    if (this.#stream.headersSent) {
      this.#trailers = trailersOf(completed);
      this.#stream.end();
    } else {
      answerWithStatus(this.#stream, completed);
      this.#leave();
    }
  }

  get #isLeft(): boolean {
    return this.#stream.closed || this.#stream.destroyed;
  }

  #limit(header: string | string[] | undefined): void {
    if (header === undefined) return;
    const { timeoutMs, error } = parseTimeout(String(header), Number.POSITIVE_INFINITY);
    // Not with what was sent, which may be long.
    if (error !== undefined) throw refuse("INVALID_REQUEST", `${headerTimeout} is no time limit`);
    if (timeoutMs === undefined || timeoutMs > LONGEST_TIMER_MS) return;
    const message = `the call took longer than the ${timeoutMs} ms that its caller allowed`;
    const end = () => this.end(toGrpcStatus(refuse("DEADLINE_EXCEEDED", message)));
    this.#deadline = setTimeout(end, timeoutMs);
  }

  /** Bytes came: what is whole of them is read. */
  received(chunk: Buffer): void {
    const bytes = this.#partial === null ? chunk : this.#partial.add(chunk);
    let at = 0;
    while (!this.hasEnded && bytes.byteLength - at >= HEADER_BYTES) {
      const length = bytes.readUInt32BE(at + 1);
      if (length > MESSAGE_LIMIT_BYTES) {
        this.end(toGrpcStatus(tooLarge(MESSAGE_LIMIT_BYTES)));
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
      if (isCompressed) throw refuse("MALFORMED_MESSAGE", "the message is compressed, and no encoding was named");
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

  /** The peer has ended its half. What it has reset, or what was cut here, ends as if it were complete. */
  halfClosed(): void {
    if (this.hasEnded || this.#isLeft) return;
    if (this.#partial !== null) {
      this.end(toGrpcStatus(refuse("MALFORMED_MESSAGE", "the last message is cut short")));
      return;
    }
    this.#guard(() => this.#reader?.onHalfClose());
  }

  /** All was sent, and the status is the last. */
  sendTrailers(): void {
    this.#stream.sendTrailers(this.#trailers ?? trailersOf(OK));
    this.#leave();
  }

  /** The stream is over. */
  closed(): void {
    this.#method.journal.over(this);
    this.#settle();
    this.#leave();
  }

  /** What a handler throws ends its call, and no other. */
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
    this.end(toGrpcStatus(mapped));
  }

  #settle(): void {
    this.#partial = null;
    if (this.#deadline !== null) clearTimeout(this.#deadline);
    this.#deadline = null;
  }

  /** Tell the reader, but not while it is called: a peer may leave its half open long after. */
  #leave(): void {
    process.nextTick(tellGone, this);
  }

  /** Called once what ended the call has returned. */
  tellGone(): void {
    const reader = this.#reader;
    this.#reader = null;
    this.#guard(() => reader?.onGone());
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

// Each is one function for all calls, with the stream as `this`: closures of each would be a third of what is kept.

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

/** The end of the stream follows. */
function ignore(): void {}
