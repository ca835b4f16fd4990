import type { Clock } from "@rollcall/process";

/** The writing side of a call: see FrameCall. */
export interface WritableCall {
  readonly unread: number;
  write(frame: Buffer): boolean;
  onceAllRead(listener: () => void): void;
  end(error?: unknown): void;
}

export interface OutgoingLimits {
  /** How long a peer can leave frames unread. */
  readonly unreadTimeoutMs: number;
  /** Maximum number of frames that wait for a peer to read. */
  readonly maxUnreadFrames: number;
}

/** Notified when a peer that had fallen behind has read everything. */
export interface DrainListener {
  drained(): void;
}

/** Sends frames to one peer with a bounded buffer: a peer that does not read is detected. */
export class Outgoing {
  readonly #call: WritableCall;
  readonly #clock: Clock;
  readonly #limits: OutgoingLimits;
  readonly #listener: DrainListener;
  #unreadSinceMs: number | null = null;

  constructor(call: WritableCall, clock: Clock, limits: OutgoingLimits, listener: DrainListener) {
    this.#call = call;
    this.#clock = clock;
    this.#limits = limits;
    this.#listener = listener;
  }

  /**
   * Whether frames wait because the peer does not read. While they wait, only necessary frames
   * should be sent.
   */
  get isBehind(): boolean {
    return this.#unreadSinceMs !== null;
  }

  /** Whether the peer has left frames unread for too long, or too many of them. */
  get isTooSlow(): boolean {
    if (this.#unreadSinceMs === null) return false;
    const unreadMs = this.#clock.nowMs() - this.#unreadSinceMs;
    const { unreadTimeoutMs, maxUnreadFrames } = this.#limits;
    return unreadMs > unreadTimeoutMs || this.#call.unread > maxUnreadFrames;
  }

  send(frame: Buffer): void {
    if (this.#call.write(frame) || this.#unreadSinceMs !== null) return;
    this.#unreadSinceMs = this.#clock.nowMs();
    this.#call.onceAllRead(() => {
      this.#unreadSinceMs = null;
      this.#listener.drained();
    });
  }

  /** Send a last frame and end the call with an error. */
  fail(lastFrame: Buffer, error: unknown): void {
    this.#call.write(lastFrame);
    this.#call.end(error);
  }

  /** End the call with status OK. */
  end(): void {
    this.#call.end();
  }
}
