import type { Clock } from "@rollcall/process";

/** Calls back once, at a time that can be changed. The callback must not throw. */
export class Alarm {
  readonly #clock: Clock;
  readonly #onDue: () => void;
  #pending: { readonly atMs: number; readonly cancel: AbortController } | null = null;

  constructor(clock: Clock, onDue: () => void) {
    this.#clock = clock;
    this.#onDue = onDue;
  }

  /**
   * Call back at this time of the monotonic clock, or immediately if it has passed. Replaces a time that
   * was set before.
   */
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
        // Ignore the rejection: the alarm was cleared or set to a different time.
      },
    );
  }

  /** Cancel the alarm, if one is set. */
  clear(): void {
    this.#pending?.cancel.abort();
    this.#pending = null;
  }
}
