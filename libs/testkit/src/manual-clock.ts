import type { Clock } from "@rollcall/process";

interface Sleeper {
  readonly wakeAtMs: number;
  readonly wake: () => void;
}

/** A clock that advances only on request. */
export class ManualClock implements Clock {
  readonly #sleepers = new Set<Sleeper>();
  #nowMs: number;
  #wallMs: number;

  constructor(start: { readonly nowMs?: number; readonly wallMs?: number } = {}) {
    this.#nowMs = start.nowMs ?? 0;
    this.#wallMs = start.wallMs ?? 1_700_000_000_000;
  }

  /**
   * Number of current sleepers. A test waits until its subject sleeps before it advances the time.
   */
  get sleepers(): number {
    return this.#sleepers.size;
  }

  nowMs(): number {
    return this.#nowMs;
  }

  wallMs(): number {
    return this.#wallMs;
  }

  async sleep(ms: number, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    if (ms <= 0) return;
    await new Promise<void>((resolve, reject) => {
      const sleeper = {
        wakeAtMs: this.#nowMs + ms,
        wake: () => {
          this.#sleepers.delete(sleeper);
          signal.removeEventListener("abort", onAbort);
          resolve();
        },
      };
      const onAbort = () => {
        this.#sleepers.delete(sleeper);
        reject(signal.reason);
      };
      signal.addEventListener("abort", onAbort, { once: true });
      this.#sleepers.add(sleeper);
    });
  }

  /** Advance the time and wake the sleepers that are due, the earliest first. */
  advance(ms: number): void {
    this.#moveTo(this.#nowMs + ms);
    const due = [...this.#sleepers].filter(({ wakeAtMs }) => wakeAtMs <= this.#nowMs);
    for (const { wake } of due.toSorted((a, b) => a.wakeAtMs - b.wakeAtMs)) wake();
  }

  /**
   * Advance the time step by step: each woken sleeper finishes its work before the next one wakes.
   */
  async pass(ms: number): Promise<void> {
    const untilMs = this.#nowMs + ms;
    for (;;) {
      await settle();
      const next = [...this.#sleepers].toSorted((a, b) => a.wakeAtMs - b.wakeAtMs)[0];
      if (next === undefined || next.wakeAtMs > untilMs) break;
      this.#moveTo(next.wakeAtMs);
      next.wake();
    }
    this.#moveTo(untilMs);
    await settle();
  }

  /** Make the wall clock jump; the monotonic clock does not. */
  jumpWall(ms: number): void {
    this.#wallMs += ms;
  }

  #moveTo(nowMs: number): void {
    this.#wallMs += nowMs - this.#nowMs;
    this.#nowMs = nowMs;
  }
}

/** Wait until everything that is ready to run has run. */
export async function settle(): Promise<void> {
  for (let turn = 0; turn < 8; turn += 1) await new Promise((resolve) => setImmediate(resolve));
}
