import { BrakeProcess, type BrakeWorld } from "./brake-process.ts";

const PLACES = 2;
const LEAST_DOWN_MS = 1_000;
const MOST_DOWN_MS = 60_000;
/** A lease that has run out, a gap in the reads of the process that takes over, and answers that are lost. */
const DECIDED_WITHIN_MS = 60_000;

/** The processes that contend for the lease of the brake, what goes wrong with them, and what must hold of them. */
export class BrakeProcesses {
  readonly #world: BrakeWorld;
  readonly #processes: (BrakeProcess | null)[] = new Array<null>(PLACES).fill(null);
  /** Since when no process has decided although the same one could; by its place. */
  readonly #ableSinceMs: number[] = new Array<number>(PLACES).fill(0);
  #started = 0;

  constructor(world: BrakeWorld) {
    this.#world = world;
  }

  /** Whether one of them decides. */
  get isDecided(): boolean {
    return this.#processes.some((process) => process?.isDeciding);
  }

  start(): void {
    for (let place = 0; place < PLACES; place += 1) this.#start(place);
  }

  crash(): void {
    for (const process of this.#processes) process?.crash();
  }

  /** Let something go wrong with a process, or between it and the record; most often nothing. */
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

  /** See BrakeProcess. */
  checkTrust(): void {
    for (const process of this.#processes) process?.checkTrust();
  }

  /** Some process decides, as long as one could. */
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

  /** Short times are as likely as long ones. */
  #downMs(): number {
    return LEAST_DOWN_MS * (MOST_DOWN_MS / LEAST_DOWN_MS) ** this.#world.random();
  }
}
