import type { Clock } from "@rollcall/process";

/** A clock drifts slowly, and hardly ever jumps. */
const TELL_EVERY_MS = 60_000;

/** Tells this machine's wall time in frames: in a stream's first one, and once a minute. */
export class TimeReport {
  readonly #clock: Clock;
  #toldAtMs = Number.NEGATIVE_INFINITY;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Milliseconds since 1970 for the frame that is being made; 0 when it need not carry them. */
  next(): bigint {
    const nowMs = this.#clock.nowMs();
    if (nowMs - this.#toldAtMs < TELL_EVERY_MS) return 0n;
    this.#toldAtMs = nowMs;
    return BigInt(Math.trunc(this.#clock.wallMs()));
  }
}
