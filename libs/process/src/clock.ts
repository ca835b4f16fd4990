/** The only source of time in shells, so that tests can replace it. */
export interface Clock {
  /** Monotonic milliseconds, which never jump. Only differences are meaningful. */
  nowMs(): number;
  /** Wall-clock milliseconds since 1970, for display and for values that leave the process. They can jump. */
  wallMs(): number;
  /**
   * Resolve after `ms` (immediately when 0 or less), or reject with the signal's reason as soon as it aborts.
   */
  sleep(ms: number, signal: AbortSignal): Promise<void>;
}

// The longest delay of a timer, in milliseconds. Node.js reduces longer delays to 1 ms.
const LONGEST_TIMER_MS = 2_147_483_647;

export const systemClock: Clock = {
  nowMs: () => performance.now(),
  wallMs: () => Date.now(),
  sleep: async (ms, signal) => {
    signal.throwIfAborted();
    for (let leftMs = ms; leftMs > 0; leftMs -= LONGEST_TIMER_MS) {
      await sleepOnce(Math.min(leftMs, LONGEST_TIMER_MS), signal);
    }
  },
};

function sleepOnce(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const onAbort = () => {
      clearTimeout(timer);
      reject(signal.reason);
    };
    const timer = setTimeout(() => {
      // Remove the listener, because a signal outlives many sleeps. Otherwise a loop would leak one listener
      // per iteration.
      signal.removeEventListener("abort", onAbort);
      resolve();
    }, ms);
    signal.addEventListener("abort", onAbort, { once: true });
  });
}
