import type { Clock } from "@rollcall/runtime/client";

/** A clock that stands still until a test moves it. */
export interface ManualClock extends Clock {
  /** Let time pass: whoever sleeps wakes in order, and does what it does, before the next wakes. */
  advance(ms: number): Promise<void>;
  /** How many sleep: as long as there is one, a process with a real clock stays alive. */
  sleeping(): number;
  /** Move wall time alone, as an operator with the wrong year in mind would. */
  jumpWallTime(ms: number): void;
}

/** Create a clock that shows 0. */
export function createManualClock(): ManualClock {
  let nowMs = 0;
  let wallOffsetMs = 1_700_000_000_000;
  let sleepers: { readonly atMs: number; readonly wake: () => void }[] = [];

  return {
    nowMs: () => nowMs,
    wallMs: () => nowMs + wallOffsetMs,
    sleep: (ms, signal) =>
      new Promise((resolve, reject) => {
        if (signal.aborted) return reject(signal.reason);
        if (ms <= 0) return resolve();
        const onAbort = (): void => {
          sleepers = sleepers.filter((it) => it !== sleeper);
          reject(signal.reason);
        };
        const wake = (): void => {
          signal.removeEventListener("abort", onAbort);
          resolve();
        };
        const sleeper = { atMs: nowMs + ms, wake };
        sleepers.push(sleeper);
        signal.addEventListener("abort", onAbort, { once: true });
      }),
    advance: async (ms) => {
      const untilMs = nowMs + ms;
      for (;;) {
        await settle();
        const next = sleepers.toSorted((a, b) => a.atMs - b.atMs)[0];
        if (next === undefined || next.atMs > untilMs) break;
        sleepers = sleepers.filter((it) => it !== next);
        nowMs = Math.max(nowMs, next.atMs);
        next.wake();
      }
      nowMs = untilMs;
      await settle();
    },
    sleeping: () => sleepers.length,
    jumpWallTime: (ms) => {
      wallOffsetMs += ms;
    },
  };
}

/** Wait until everything that is ready to run has run. */
export async function settle(): Promise<void> {
  for (let turn = 0; turn < 8; turn += 1) {
    await new Promise((resolve) => setImmediate(resolve));
  }
}
