import type { Clock } from "./clock.ts";

/** How long a rest is. */
export interface RestTime {
  /** When nothing calls. */
  readonly atMostMs: number;
  /** Also when something calls, so that whatever calls meanwhile is worked on together. Default 0. */
  readonly atLeastMs?: number;
  /** After a call that is in no hurry, for others to join it. Default 0. */
  readonly soonMs?: number;
}

/** Why a rest ends early. Given, since an abort without a reason records a stack for one. */
const CALLED = "called";

/** Lets a loop rest until there is something to do. A call while it works is not lost. */
export class WakeUp {
  #isCalled = false;
  /** Called by what is in no hurry. */
  #isCalledSoon = false;
  /** Ended by any call. */
  #rest: AbortController | null = null;
  /** Ended by a call that is in a hurry. */
  #company: AbortController | null = null;

  /** There is something to do. */
  call(): void {
    this.#isCalled = true;
    this.#rest?.abort(CALLED);
    this.#company?.abort(CALLED);
  }

  /** There is something to do that may wait for `soonMs`, so that what else comes is worked on with it. */
  callSoon(): void {
    this.#isCalledSoon = true;
    this.#rest?.abort(CALLED);
  }

  /** Rest until called. When called since the last rest, for the least time only. Rejects with the signal's reason. */
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
  // It may have aborted since a sleep before this one ended.
  signal.throwIfAborted();
  const onAbort = () => called.abort(CALLED);
  signal.addEventListener("abort", onAbort, { once: true });
  // It rejects when called, or when the signal aborts, which is looked at below.
  await clock.sleep(ms, called.signal).catch(() => {});
  signal.removeEventListener("abort", onAbort);
  signal.throwIfAborted();
}
