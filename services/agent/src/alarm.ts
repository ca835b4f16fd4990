import type { Clock } from "@rollcall/process";

/** Calls back once at a time that can be moved. The callback must not throw. */
export class Alarm {
  readonly #clock: Clock;
  readonly #onDue: () => void;
  #pending: { readonly atMs: number; readonly cancel: AbortController } | null = null;

  constructor(clock: Clock, onDue: () => void) {
    this.#clock = clock;
    this.#onDue = onDue;
  }

  /** Ring at this time of the monotonic clock, at once when it has passed. Replaces the time set before. */
  setAt(atMs: number): void {
    if (this.#pending?.atMs === atMs) return;
    this.clear();
    const pending = { atMs, cancel: new AbortController() };
    this.#pending = pending;
    this.#clock.sleep(Math.max(0, atMs - this.#clock.nowMs()), pending.cancel.signal).then(
      () => {
        if (this.#pending !== pending) return;
        this.#pending = null;
        this.#onDue();
      },
      () => {
        // Cleared, or set to another time.
      },
    );
  }

  /** Do not ring. */
  clear(): void {
    this.#pending?.cancel.abort();
    this.#pending = null;
  }
}
