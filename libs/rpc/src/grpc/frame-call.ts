import { constants, type Http2Stream } from "node:http2";
import { status as GrpcCode, Metadata, type ServerInterceptingCallInterface } from "@grpc/grpc-js";
import { mapError } from "@rollcall/errors";
import { toGrpcStatus } from "./grpc-error.ts";

type Listener = Parameters<ServerInterceptingCallInterface["start"]>[0];
type Status = Parameters<ServerInterceptingCallInterface["sendStatus"]>[0];

/** Receives what happens to a call. */
export interface FrameReader<I> {
  /** A message came. */
  onFrame(message: I): void;
  /** The peer will send nothing more; a client that cancels may say so first. */
  onHalfClose(): void;
  /** The call is over, in whatever way; nothing is told after that. */
  onGone(): void;
}

/** Takes a call whose messages both ways are frames of one long stream. */
export interface FrameHandler<I> {
  open(call: FrameCall<I>, metadata: Metadata): FrameReader<I>;
}

/** What has become of calls, grpc-js's own ends of them included; one for all calls. */
export interface CallEnds {
  /** Whether a call has its status, or is over. */
  hasEnded(call: ServerInterceptingCallInterface): boolean;
  /** A call is over; called before its reader is told. */
  onCancelled(call: ServerInterceptingCallInterface): void;
}

/** As many frames may wait to be sent before a peer counts as behind; as of Node.js' streams of objects. */
const MOST_UNREAD = 16;

const OK: Status = { code: GrpcCode.OK, details: "OK", metadata: null };
const NO_METADATA = new Metadata();

/**
 * One call of two streams, without the duplex stream that grpc-js makes of it: that costs as much memory as all else
 * that is kept of an agent's call, and a tenth of a heartbeat. Flow control, deadlines, decoding and status trailers
 * are those of grpc-js.
 */
export class FrameCall<I> implements Listener {
  readonly #call: ServerInterceptingCallInterface;
  readonly #handler: FrameHandler<I>;
  readonly #ends: CallEnds;
  #reader: FrameReader<I> | null = null;
  #unread = 0;
  #onAllRead: (() => void) | null = null;

  constructor(call: ServerInterceptingCallInterface, handler: FrameHandler<I>, ends: CallEnds) {
    this.#call = call;
    this.#handler = handler;
    this.#ends = ends;
  }

  /** HOST:PORT of the other end. */
  getPeer(): string {
    return this.#call.getPeer();
  }

  /** How many frames wait to be sent. */
  get unread(): number {
    return this.#unread;
  }

  /**
   * Send a frame. Returns whether the peer keeps up. One after the status, which grpc-js may have sent by itself, is
   * left out: it would break the stream, and what waits before it, and the status, would never be sent.
   */
  write(frame: Buffer): boolean {
    if (this.#ends.hasEnded(this.#call)) return true;
    this.#unread += 1;
    this.#call.sendMessage(frame, this.#onSent);
    return this.#unread < MOST_UNREAD;
  }

  /** Have a function called once nothing waits to be sent any more. */
  onceAllRead(listener: () => void): void {
    this.#onAllRead = listener;
  }

  /** End the call, with status OK where nothing else is said, after what was written. */
  end(status: Status = OK): void {
    if (!this.#ends.hasEnded(this.#call)) this.#call.sendStatus(status);
  }

  /** Called by grpc-js, like the three below. */
  onReceiveMetadata(metadata: Metadata): void {
    // They are read below and never again.
    Object.assign(this.#call, { metadata: NO_METADATA });
    try {
      this.#reader = this.#handler.open(this, metadata);
    } catch (error) {
      this.end(toGrpcStatus(mapError(error)));
      return;
    }
    this.#call.startRead();
  }

  onReceiveMessage(message: I): void {
    this.#reader?.onFrame(message);
    this.#call.startRead();
  }

  onReceiveHalfClose(): void {
    // What its peer has reset ends as if it were complete.
    if (!wasReset(this.#call)) this.#reader?.onHalfClose();
  }

  onCancel(): void {
    this.#ends.onCancelled(this.#call);
    const reader = this.#reader;
    // A peer may leave its half open long after.
    this.#reader = null;
    reader?.onGone();
  }

  readonly #onSent = (): void => {
    this.#unread -= 1;
    if (this.#unread > 0) return;
    const listener = this.#onAllRead;
    this.#onAllRead = null;
    listener?.();
  };
}

/** grpc-js keeps to itself the stream of HTTP/2 below a call. */
function wasReset(call: ServerInterceptingCallInterface & { readonly stream?: Http2Stream }): boolean {
  return (call.stream?.rstCode ?? constants.NGHTTP2_NO_ERROR) !== constants.NGHTTP2_NO_ERROR;
}
