import type { Clock } from "@rollcall/runtime";

/** Lets a loop rest until there is something to do. A call while it works is not lost. */
export class WakeUp {
  #isCalled = false;
  #rest: AbortController | null = null;

  /** There is something to do. */
  call(): void {
    this.#isCalled = true;
    this.#rest?.abort();
  }

  /** Rest until called, `ms` at most. Returns at once when called since the last rest. Rejects with the signal's reason. */
  async rest(clock: Clock, ms: number, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    if (!this.#isCalled) {
      const rest = new AbortController();
      this.#rest = rest;
      const onAbort = () => rest.abort();
      signal.addEventListener("abort", onAbort, { once: true });
      // It rejects when called, or when the signal aborts, which is looked at below.
      await clock.sleep(ms, rest.signal).catch(() => {});
      signal.removeEventListener("abort", onAbort);
      this.#rest = null;
      signal.throwIfAborted();
    }
    this.#isCalled = false;
  }
}
