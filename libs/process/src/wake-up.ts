import type { Clock } from "./clock.ts";

/** How long to rest. */
export interface RestTime {
  /** Maximum rest, when there is no call. */
  readonly atMostMs: number;
  /** Minimum rest even when called, so that calls during this time are handled together. Default 0. */
  readonly atLeastMs?: number;
  /** Additional rest after a non-urgent call, to wait for other calls. Default 0. */
  readonly soonMs?: number;
}

/** The abort reason that ends a rest early. Without a reason, each abort would capture a stack trace. */
const CALLED = "called";

/** Lets a loop rest until there is work. A call while the loop works is not lost. */
export class WakeUp {
  #isCalled = false;
  /** Whether a non-urgent call was made since the last rest. */
  #isCalledSoon = false;
  /** The current rest, which any call ends. */
  #rest: AbortController | null = null;
  /** The current wait for other calls, which an urgent call ends. */
  #company: AbortController | null = null;

  /** Signal that there is work. */
  call(): void {
    this.#isCalled = true;
    this.#rest?.abort(CALLED);
    this.#company?.abort(CALLED);
  }

  /** Signal work that can wait for `soonMs`, so that it is done together with other work. */
  callSoon(): void {
    this.#isCalledSoon = true;
    this.#rest?.abort(CALLED);
  }

  /**
   * Rest until called. If there was a call since the last rest, rest only for the minimum time. Rejects with the
   * signal's reason.
   */
  async rest(clock: Clock, time: RestTime, signal: AbortSignal): Promise<void> {
    const { atMostMs, atLeastMs = 0, soonMs = 0 } = time;
    signal.throwIfAborted();
    if (atLeastMs > 0) await clock.sleep(atLeastMs, signal);
    if (!this.#isCalled && !this.#isCalledSoon) {
      this.#rest = new AbortController();
      await sleepUntilCalled(clock, atMostMs - atLeastMs, this.#rest, signal);
      this.#rest = null;
    }
    if (!this.#isCalled && this.#isCalledSoon && soonMs > 0) {
      this.#company = new AbortController();
      await sleepUntilCalled(clock, soonMs, this.#company, signal);
      this.#company = null;
    }
    this.#isCalled = false;
    this.#isCalledSoon = false;
  }
}

async function sleepUntilCalled(clock: Clock, ms: number, called: AbortController, signal: AbortSignal): Promise<void> {
  // Check the signal, which may have aborted after the previous sleep ended.
  signal.throwIfAborted();
  const onAbort = () => called.abort(CALLED);
  signal.addEventListener("abort", onAbort, { once: true });
  // Ignore the rejection: sleep() rejects when called or when the signal aborts, and the signal is checked below.
  await clock.sleep(ms, called.signal).catch(() => {});
  signal.removeEventListener("abort", onAbort);
  signal.throwIfAborted();
}
