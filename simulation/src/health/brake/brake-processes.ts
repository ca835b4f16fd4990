import { BrakeProcess, type BrakeWorld } from "./brake-process.ts";

const PLACES = 2;
const LEAST_DOWN_MS = 1_000;
const MOST_DOWN_MS = 60_000;
/**
 * Maximum time without a decider. It covers an expiring lease, a gap in the reads of the process that takes
 * over, and lost responses.
 */
const DECIDED_WITHIN_MS = 60_000;

/**
 * Runs the processes that compete for the lease of the brake, causes their faults, and checks their
 * invariants.
 */
export class BrakeProcesses {
  readonly #world: BrakeWorld;
  readonly #processes: (BrakeProcess | null)[] = new Array<null>(PLACES).fill(null);
  /** For each process, the time since which it could have decided while no process did. */
  readonly #ableSinceMs: number[] = new Array<number>(PLACES).fill(0);
  #started = 0;

  constructor(world: BrakeWorld) {
    this.#world = world;
  }

  /** Whether one of the processes decides. */
  get isDecided(): boolean {
    return this.#processes.some((process) => process?.isDeciding);
  }

  start(): void {
    for (let place = 0; place < PLACES; place += 1) this.#start(place);
  }

  crash(): void {
    for (const process of this.#processes) process?.crash();
  }

  /** Randomly cause a fault in a process, or between a process and the store. Most calls cause none. */
  disturb(): void {
    const { schedule } = this.#world;
    const place = Math.floor(this.#world.random() * PLACES);
    const process = this.#processes[place];
    const chance = this.#world.random();
    if (process === null || process === undefined) return;
    if (chance < 0.002) process.stop(this.#downMs());
    else if (chance < 0.003) {
      process.isCutOff = true;
      schedule.after(this.#downMs(), () => {
        process.isCutOff = false;
      });
    } else if (chance < 0.0035) {
      process.crash();
      this.#startLater(place);
    } else if (chance < 0.004 && process.isRunning && !process.isCutOff) {
      void process.close().then(() => this.#startLater(place));
    }
  }

  /** Call checkTrust() of every running process. */
  checkTrust(): void {
    for (const process of this.#processes) process?.checkTrust();
  }

  /** Check that some process decides whenever one could. */
  checkDecided(): void {
    const { nowMs } = this.#world.schedule;
    const { isDecided } = this;
    for (const [place, process] of this.#processes.entries()) {
      const isAble = process?.isRunning === true && !process.isCutOff;
      if (isDecided || !isAble) this.#ableSinceMs[place] = nowMs;
      if (nowMs - (this.#ableSinceMs[place] ?? nowMs) <= DECIDED_WITHIN_MS) continue;
      this.#world.fail(`no process decides about the brake, although ${process?.instance} could`);
    }
  }

  #startLater(place: number): void {
    this.#processes[place] = null;
    this.#world.schedule.after(this.#downMs(), () => this.#start(place));
  }

  #start(place: number): void {
    if (this.#processes[place] !== null) return;
    this.#started += 1;
    this.#processes[place] = new BrakeProcess(this.#world, `h${place}-${this.#started}`);
  }

  /** A random down time, distributed evenly on a logarithmic scale. */
  #downMs(): number {
    return LEAST_DOWN_MS * (MOST_DOWN_MS / LEAST_DOWN_MS) ** this.#world.random();
  }
}
