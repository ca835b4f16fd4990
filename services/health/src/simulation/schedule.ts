import type { Clock } from "@rollcall/process";

/** A planned step, which can be cancelled. */
export interface Planned {
  run: (() => void) | null;
}

/**
 * The time of a simulation, in steps: what is due in a step happens in the order in which it was planned. Promises that
 * settle in a step have settled when the next one begins.
 */
export class Schedule {
  readonly stepMs: number;
  readonly #due = new Map<number, Planned[]>();
  /** Work for this step, after what is due and what follows from it. */
  #soon: Planned[] = [];
  #step = 0;

  constructor(stepMs: number) {
    this.stepMs = stepMs;
  }

  get nowMs(): number {
    return this.#step * this.stepMs;
  }

  /** Steps so far. */
  get steps(): number {
    return this.#step;
  }

  /** Do something after so many milliseconds, rounded up to whole steps, one at least. */
  after(ms: number, run: () => void): Planned {
    return this.afterSteps(Math.max(1, Math.ceil(ms / this.stepMs)), run);
  }

  /** Do something after so many steps; after 0, in this one. */
  afterSteps(steps: number, run: () => void): Planned {
    const planned: Planned = { run };
    if (steps === 0) {
      this.#soon.push(planned);
      return planned;
    }
    const step = this.#step + steps;
    const due = this.#due.get(step);
    if (due === undefined) this.#due.set(step, [planned]);
    else due.push(planned);
    return planned;
  }

  /** Advance by one step, and do what is due in it. Resolves once everything that follows from it has happened. */
  async advance(): Promise<void> {
    this.#step += 1;
    const due = this.#due.get(this.#step);
    this.#due.delete(this.#step);
    if (due !== undefined) for (const planned of due) planned.run?.();
    await settled();
    while (this.#soon.length > 0) {
      const soon = this.#soon;
      this.#soon = [];
      for (const planned of soon) planned.run?.();
      await settled();
    }
  }
}

/** Resolves once every promise that can settle has: Node turns to its next immediate only then. */
function settled(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

const EPOCH_WALL_MS = 1_700_000_000_000;

/**
 * The clock of one simulated process.
 *
 * @param deliver lets a timer reach the process: later if it is stopped, never if it is dead.
 */
export function createVirtualClock(schedule: Schedule, deliver: (run: () => void) => void): Clock {
  return {
    nowMs: () => schedule.nowMs,
    wallMs: () => EPOCH_WALL_MS + schedule.nowMs,
    sleep: (ms, signal) => {
      if (signal.aborted) return Promise.reject(signal.reason);
      if (ms <= 0) return Promise.resolve();
      return new Promise((resolve, reject) => {
        const onAbort = () => {
          planned.run = null;
          reject(signal.reason);
        };
        const wake = () => {
          if (planned.run === null) return;
          signal.removeEventListener("abort", onAbort);
          resolve();
        };
        const planned = schedule.after(ms, () => deliver(wake));
        signal.addEventListener("abort", onAbort, { once: true });
      });
    },
  };
}
