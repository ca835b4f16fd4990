import type { Clock } from "./clock.ts";

/** How long a rest is. */
export interface RestTime {
  /** When nothing calls. */
  readonly atMostMs: number;
  /** Also when something calls, so that whatever calls meanwhile is worked on together. Default 0. */
  readonly atLeastMs?: number;
}

/** Why a rest ends early. Given, since an abort without a reason records a stack for one. */
const CALLED = "called";

/** Lets a loop rest until there is something to do. A call while it works is not lost. */
export class WakeUp {
  #isCalled = false;
  #rest: AbortController | null = null;

  /** There is something to do. */
  call(): void {
    this.#isCalled = true;
    this.#rest?.abort(CALLED);
  }

  /** Rest until called. When called since the last rest, for the least time only. Rejects with the signal's reason. */
  async rest(clock: Clock, time: RestTime, signal: AbortSignal): Promise<void> {
    const { atMostMs, atLeastMs = 0 } = time;
    signal.throwIfAborted();
    if (atLeastMs > 0) await clock.sleep(atLeastMs, signal);
    if (!this.#isCalled) {
      const rest = new AbortController();
      this.#rest = rest;
      const onAbort = () => rest.abort(CALLED);
      signal.addEventListener("abort", onAbort, { once: true });
      // It rejects when called, or when the signal aborts, which is looked at below.
      await clock.sleep(atMostMs - atLeastMs, rest.signal).catch(() => {});
      signal.removeEventListener("abort", onAbort);
      this.#rest = null;
      signal.throwIfAborted();
    }
    this.#isCalled = false;
  }
}
