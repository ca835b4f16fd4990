import type { Clock } from "@rollcall/process";

/** Calls a function once, at the time that was set last. */
export class DueTimer {
  readonly #clock: Pick<Clock, "nowMs" | "sleep">;
  readonly #onDue: () => void;
  #waiting = new AbortController();

  constructor(clock: Pick<Clock, "nowMs" | "sleep">, onDue: () => void) {
    this.#clock = clock;
    this.#onDue = onDue;
  }

  /** Replace the time; null for never. A time that has passed is due after a millisecond. */
  set(atMs: number | null): void {
    this.#waiting.abort();
    if (atMs === null) return;
    const waiting = new AbortController();
    this.#waiting = waiting;
    // Always wait, because a function that sets the same time again would otherwise be called without a pause.
    const waitMs = Math.max(1, Math.ceil(atMs - this.#clock.nowMs()));
    const onDue = (): void => {
      if (!waiting.signal.aborted) this.#onDue();
    };
    void this.#clock.sleep(waitMs, waiting.signal).then(onDue, () => {});
  }
}
