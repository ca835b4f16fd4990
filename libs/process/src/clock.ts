/** The only way in which a shell asks for the time, so that a test can hand in a clock of its own. */
export interface Clock {
  /** Monotonic milliseconds. Only differences are meaningful; it never jumps. */
  nowMs(): number;
  /** Wall time in milliseconds since 1970, for display and for values that leave the process. It may jump. */
  wallMs(): number;
  /** Resolve after `ms` (at once when 0 or less), or reject with the signal's reason as soon as it aborts. */
  sleep(ms: number, signal: AbortSignal): Promise<void>;
}

// A longer delay than this overflows to 1 ms in Node.
const LONGEST_TIMER_MS = 2_147_483_647;

/** The clock of this process. */
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
      // Signals outlive sleeps by far: a listener left behind on each turn of a loop would be a leak.
      signal.removeEventListener("abort", onAbort);
      resolve();
    }, ms);
    signal.addEventListener("abort", onAbort, { once: true });
  });
}
