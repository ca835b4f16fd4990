import { status as GrpcCode, Metadata, type ServerInterceptingCallInterface } from "@grpc/grpc-js";
import { mapError } from "@rollcall/errors";
import { toGrpcStatus } from "./grpc-error.ts";

type Listener = Parameters<ServerInterceptingCallInterface["start"]>[0];
type Status = Parameters<ServerInterceptingCallInterface["sendStatus"]>[0];

/** Receives what happens to a call. */
export interface FrameReader<I> {
  /** A message came. */
  onFrame(message: I): void;
  /** The peer will send nothing more; a call that breaks may tell so first. */
  onHalfClose(): void;
  /** The call is over, in whatever way. */
  onGone(): void;
}

/** Takes a call whose messages both ways are frames of one long stream. */
export interface FrameHandler<I> {
  open(call: FrameCall<I>, metadata: Metadata): FrameReader<I>;
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
  readonly #onCancelled: (call: ServerInterceptingCallInterface) => void;
  #reader: FrameReader<I> | null = null;
  #unread = 0;
  #hasEnded = false;
  #onAllRead: (() => void) | null = null;

  /** @param onCancelled called before the reader is told; one function for all calls. */
  constructor(
    call: ServerInterceptingCallInterface,
    handler: FrameHandler<I>,
    onCancelled: (call: ServerInterceptingCallInterface) => void,
  ) {
    this.#call = call;
    this.#handler = handler;
    this.#onCancelled = onCancelled;
  }

  /** HOST:PORT of the other end. */
  getPeer(): string {
    return this.#call.getPeer();
  }

  /** How many frames wait to be sent. */
  get unread(): number {
    return this.#unread;
  }

  /** Send a frame. Returns whether the peer keeps up. */
  write(frame: Buffer): boolean {
    if (this.#hasEnded) return true;
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
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.#call.sendStatus(status);
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
    this.#reader?.onHalfClose();
  }

  onCancel(): void {
    this.#hasEnded = true;
    this.#onCancelled(this.#call);
    this.#reader?.onGone();
  }

  readonly #onSent = (): void => {
    this.#unread -= 1;
    if (this.#unread > 0) return;
    const listener = this.#onAllRead;
    this.#onAllRead = null;
    listener?.();
  };
}
