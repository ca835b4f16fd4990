import { isStoreUnavailable, reasonOf } from "@rollcall/errors";
import { type Clock, fullJitter, type Logger, type Task, WakeUp } from "@rollcall/process";
import type { Random } from "../replica/farewell.ts";

export interface WorkLoopOptions {
  /** Constant, kebab-case. */
  readonly name: string;
  readonly clock: Clock;
  readonly log: Logger;
  readonly random: Random;
  /** The longest pause between two turns; without it, a turn waits for a call. */
  readonly everyMs?: number;
  /** The shortest pause between two turns, which gathers calls into one. Default 0. */
  readonly gatherMs?: number;
  /** Do the work that is due. A later turn does what a turn that throws leaves undone. */
  turn(signal: AbortSignal): Promise<void>;
}

/** What all loops of a process share. */
export type LoopDeps = Pick<WorkLoopOptions, "clock" | "log" | "random">;

const BACKOFF_BASE_MS = 100;
const BACKOFF_MAX_MS = 2_000;
const UNTIL_CALLED_MS = 24 * 60 * 60_000;

/**
 * Work with the record that must continue as soon as the record is back: it retries within 2 s, where the supervisor's
 * backoff would grow.
 */
export class WorkLoop implements Task {
  readonly name: string;
  readonly #options: WorkLoopOptions;
  readonly #wakeUp = new WakeUp();
  #failures = 0;

  constructor(options: WorkLoopOptions) {
    this.name = options.name;
    this.#options = options;
  }

  /** Request a turn. */
  call(): void {
    this.#wakeUp.call();
  }

  async run(signal: AbortSignal, succeeded: () => void): Promise<void> {
    const { clock, everyMs: atMostMs = UNTIL_CALLED_MS, gatherMs: atLeastMs = 0 } = this.#options;
    while (!signal.aborted) {
      const isDone = await this.#turn(signal);
      if (isDone) succeeded();
      if (isDone) await this.#wakeUp.rest(clock, { atMostMs, atLeastMs }, signal);
      else await clock.sleep(this.#pauseMs(), signal);
    }
  }

  async #turn(signal: AbortSignal): Promise<boolean> {
    const { name: task, log, turn } = this.#options;
    try {
      await turn(signal);
      if (this.#failures > 0) log.info({ task, failures: this.#failures }, "work goes on");
      this.#failures = 0;
      return true;
    } catch (err) {
      this.#failures += 1;
      const fields = { task, failures: this.#failures, err };
      // An outage is one line, not one for each attempt.
      if (!isStoreUnavailable(err) && reasonOf(err) !== "OVERLOADED") log.error(fields, "work failed");
      else if (this.#failures === 1) log.warn(fields, "work waits for the record");
      return false;
    }
  }

  #pauseMs(): number {
    const { random } = this.#options;
    const attempt = this.#failures - 1;
    const bounds = { baseMs: BACKOFF_BASE_MS, maxMs: BACKOFF_MAX_MS };
    return fullJitter({ attempt, ...bounds, random01: random() });
  }
}
