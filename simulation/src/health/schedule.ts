import type { Clock } from "@rollcall/process";

/** A planned callback, which can be cancelled. */
export interface Planned {
  run: (() => void) | null;
}

/**
 * The time of a simulation, in steps. Work that is due in a step runs in the order of planning. Promises that settle
 * in a step have settled before the next step begins.
 */
export class Schedule {
  readonly stepMs: number;
  readonly #due = new Map<number, Planned[]>();
  /** Work to run in this step, after the due work and its consequences. */
  #soon: Planned[] = [];
  #step = 0;

  constructor(stepMs: number) {
    this.stepMs = stepMs;
  }

  get nowMs(): number {
    return this.#step * this.stepMs;
  }

  /** Number of steps so far. */
  get steps(): number {
    return this.#step;
  }

  /** Run a callback after `ms` milliseconds, rounded up to whole steps, at least one. */
  after(ms: number, run: () => void): Planned {
    return this.afterSteps(Math.max(1, Math.ceil(ms / this.stepMs)), run);
  }

  /** Run a callback after this many steps; 0 means the current step. */
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

  /** Advance by one step and run the due work. Resolves once its consequences have also run. */
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

/**
 * Resolves once every promise that can settle has settled, because Node.js runs the next immediate only after that.
 */
function settled(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

const EPOCH_WALL_MS = 1_700_000_000_000;

/**
 * The clock of one simulated process.
 *
 * @param deliver delivers a timer to the process: later if the process is stopped, never if it is dead.
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
