/** The time of a simulation, in steps: what is due in a step happens in the order in which it was planned. */
export class Schedule {
  readonly stepMs: number;
  readonly #due = new Map<number, (() => void)[]>();
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
  after(ms: number, run: () => void): void {
    const step = this.#step + Math.max(1, Math.ceil(ms / this.stepMs));
    const due = this.#due.get(step);
    if (due === undefined) this.#due.set(step, [run]);
    else due.push(run);
  }

  /** Go on by one step, and do what is due in it. */
  advance(): void {
    this.#step += 1;
    const due = this.#due.get(this.#step);
    if (due === undefined) return;
    this.#due.delete(this.#step);
    for (const run of due) run();
  }
}
