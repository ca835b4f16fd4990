import type { StatusObject } from "@grpc/grpc-js";
import type { HeartbeatResponse } from "@rollcall/api/rollcall/health/v1/health_pb";
import type { Clock } from "@rollcall/process";

/** The writable side of a grpc-js call. */
export interface WritableCall {
  readonly writableLength: number;
  write(frame: HeartbeatResponse | Buffer): boolean;
  once(event: "drain", listener: () => void): unknown;
  end(): unknown;
  emit(event: "error", status: StatusObject): boolean;
}

export interface OutgoingLimits {
  /** How long a peer may leave frames unread. */
  readonly unreadTimeoutMs: number;
  /** Most frames that wait for a peer to read. */
  readonly maxUnreadFrames: number;
}

/** Sends frames to one peer, bounded: a peer that does not read is detected, not buffered for. */
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

  /** Whether frames wait for the peer to read, so that only necessary ones should be sent. */
  get isBehind(): boolean {
    return this.#unreadSinceMs !== null;
  }

  /** Whether the peer left too much unread for too long. */
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

  /** End the call with status OK. */
  end(): void {
    this.#call.end();
  }
}
