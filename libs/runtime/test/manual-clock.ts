import type { Clock } from "../src/clock.ts";

interface Sleeper {
  readonly atMs: number;
  readonly wake: () => void;
}

/** A clock that stands still until a test moves it. */
export class ManualClock implements Clock {
  #nowMs = 1_000;
  readonly #sleepers = new Set<Sleeper>();

  nowMs(): number {
    return this.#nowMs;
  }

  wallMs(): number {
    return this.#nowMs;
  }

  /** How many sleeps are under way. */
  get sleeping(): number {
    return this.#sleepers.size;
  }

  sleep(ms: number, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    return new Promise((resolve, reject) => {
      const onAbort = () => {
        this.#sleepers.delete(sleeper);
        reject(signal.reason);
      };
      const wake = () => {
        signal.removeEventListener("abort", onAbort);
        resolve();
      };
      const sleeper = { atMs: this.#nowMs + ms, wake };
      this.#sleepers.add(sleeper);
      signal.addEventListener("abort", onAbort, { once: true });
    });
  }

  /** Let time pass, wake whose time has come, and let them run. */
  async advance(ms: number): Promise<void> {
    this.#nowMs += ms;
    for (const sleeper of this.#sleepers) {
      if (sleeper.atMs > this.#nowMs) continue;
      this.#sleepers.delete(sleeper);
      sleeper.wake();
    }
    await settle();
  }
}

/** Let everything run that is ready to. */
export async function settle(): Promise<void> {
  for (let turn = 0; turn < 5; turn += 1) await new Promise((resolve) => setImmediate(resolve));
}
