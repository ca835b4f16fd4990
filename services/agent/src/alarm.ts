import type { Clock } from "@rollcall/process";

/** Calls back once at a time that can be moved. The callback must not throw. */
export class Alarm {
  readonly #clock: Clock;
  readonly #onDue: () => void;
  #pending: AbortController | undefined;

  constructor(clock: Clock, onDue: () => void) {
    this.#clock = clock;
    this.#onDue = onDue;
  }

  /** Ring in so many milliseconds, at once when 0 or less; the time set before is forgotten. */
  set(inMs: number): void {
    this.clear();
    const pending = new AbortController();
    this.#pending = pending;
    this.#clock.sleep(inMs, pending.signal).then(
      () => {
        if (this.#pending !== pending) return;
        this.#pending = undefined;
        this.#onDue();
      },
      () => {
        // Cleared, or set anew.
      },
    );
  }

  /** Do not ring. */
  clear(): void {
    this.#pending?.abort();
    this.#pending = undefined;
  }
}
