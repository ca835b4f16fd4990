import type { Clock } from "@rollcall/runtime";

/** Lets a loop rest until it is called, or for a while. A call while it works is not lost: its next rest is short. */
export class WakeUp {
  readonly #clock: Clock;
  #called = false;
  #resting: AbortController | null = null;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** End the present rest, or else the next one at once. */
  call(): void {
    this.#called = true;
    this.#resting?.abort();
  }

  /** Forget calls so far: what they were about is looked at next. */
  clear(): void {
    this.#called = false;
  }

  /** Rest for `ms` at most. */
  async rest(ms: number): Promise<void> {
    if (this.#called) return;
    const resting = new AbortController();
    this.#resting = resting;
    // It rejects only because it was called, which is what it waits for.
    await this.#clock.sleep(ms, resting.signal).catch(() => {});
    this.#resting = null;
  }
}
