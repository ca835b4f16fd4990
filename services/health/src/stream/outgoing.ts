import type { StatusObject } from "@grpc/grpc-js";
import type { HeartbeatResponse } from "@rollcall/api/rollcall/health/v1/health_pb";
import type { Clock } from "@rollcall/process";

/** The side of a grpc-js call to which a server writes. */
export interface WritableCall {
  readonly writableLength: number;
  write(frame: HeartbeatResponse | Buffer): boolean;
  once(event: "drain", listener: () => void): unknown;
  end(): unknown;
  emit(event: "error", status: StatusObject): boolean;
}

export interface OutgoingLimits {
  /** How long a peer may leave unread what it is sent. */
  readonly unreadTimeoutMs: number;
  /** Most frames that wait for a peer to read. */
  readonly maxUnreadFrames: number;
}

/** What is sent to one peer, bounded: a peer that does not read is found out, not buffered for. */
export class Outgoing {
  readonly #call: WritableCall;
  readonly #clock: Clock;
  readonly #limits: OutgoingLimits;
  readonly #onDrained: () => void;
  #unreadSinceMs: number | null = null;

  /** @param onDrained called when a peer that had fallen behind has read everything. */
  constructor(call: WritableCall, clock: Clock, limits: OutgoingLimits, onDrained: () => void) {
    this.#call = call;
    this.#clock = clock;
    this.#limits = limits;
    this.#onDrained = onDrained;
  }

  /** Whether frames wait for the peer to read, so that more should be sent only if they must. */
  get isBehind(): boolean {
    return this.#unreadSinceMs !== null;
  }

  /** Whether the peer has to be given up. */
  get isTooSlow(): boolean {
    if (this.#unreadSinceMs === null) return false;
    const unreadMs = this.#clock.nowMs() - this.#unreadSinceMs;
    const { unreadTimeoutMs, maxUnreadFrames } = this.#limits;
    return unreadMs > unreadTimeoutMs || this.#call.writableLength > maxUnreadFrames;
  }

  send(frame: Buffer): void {
    if (this.#call.write(frame) || this.#unreadSinceMs !== null) return;
    this.#unreadSinceMs = this.#clock.nowMs();
    this.#call.once("drain", () => {
      this.#unreadSinceMs = null;
      this.#onDrained();
    });
  }

  /** Send a last frame and end the call with an error's status. */
  fail(lastFrame: Buffer, status: StatusObject): void {
    this.#call.write(lastFrame);
    this.#call.emit("error", status);
  }

  /** End the call in good order. */
  end(): void {
    this.#call.end();
  }
}
