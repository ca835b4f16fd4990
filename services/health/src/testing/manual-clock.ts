import type { Clock } from "@rollcall/runtime";

interface Sleeper {
  readonly atMs: number;
  readonly wake: () => void;
}

/** A clock that stands still until it is moved. */
export class ManualClock implements Clock {
  #nowMs = 1_000;
  readonly #sleepers = new Set<Sleeper>();

  nowMs(): number {
    return this.#nowMs;
  }

  wallMs(): number {
    return Date.UTC(2026, 0, 1) + this.#nowMs;
  }

  sleep(ms: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      if (signal.aborted) return reject(signal.reason);
      if (ms <= 0) return resolve();
      const finish = (settle: () => void) => {
        signal.removeEventListener("abort", onAbort);
        this.#sleepers.delete(sleeper);
        settle();
      };
      const onAbort = () => finish(() => reject(signal.reason));
      const sleeper = { atMs: this.#nowMs + ms, wake: () => finish(resolve) };
      signal.addEventListener("abort", onAbort, { once: true });
      this.#sleepers.add(sleeper);
    });
  }

  /** Move on, and wake who has slept enough. */
  advance(ms: number): void {
    this.#nowMs += ms;
    for (const sleeper of [...this.#sleepers]) {
      if (sleeper.atMs <= this.#nowMs) sleeper.wake();
    }
  }
}
