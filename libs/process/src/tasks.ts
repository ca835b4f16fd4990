import { setMaxListeners } from "node:events";
import { isStoreUnavailable, reasonOf } from "@rollcall/errors";
import { halfJitter } from "./backoff.ts";
import type { Clock } from "./clock.ts";
import type { Logger } from "./logging.ts";
import { counter, gauge, type MetricsRegistry, onScrape } from "./metrics.ts";
import { WakeUp } from "./wake-up.ts";

/** A piece of background work: a function of an abort signal that ends soon after the signal aborts. */
export interface Task {
  /** Constant, kebab-case; the log and the metrics carry it. */
  readonly name: string;
  /** Pauses after failures; absent means those of the supervisor. */
  readonly retry?: RetryPauses | undefined;
  /**
   * Work until the signal aborts. To throw is to be started again after a while; to return is to be done for good.
   * `succeeded` notes that a turn of the work went well: it ends a series of failures and resets the age.
   */
  run(signal: AbortSignal, succeeded: () => void): Promise<void>;
}

/** How long a task that failed waits: the first pause, which doubles with each further failure, up to the longest. */
export interface RetryPauses {
  readonly baseMs: number;
  readonly maxMs: number;
}

/** The state of a task. */
export interface TaskStatus {
  readonly name: string;
  readonly state: "running" | "waiting" | "done";
  /** Failures since the last success. */
  readonly failures: number;
  /** Since the last success, or since the start when there was none. */
  readonly sinceSuccessMs: number;
}

export interface SuperviseOptions {
  readonly log: Logger;
  readonly clock: Clock;
  /** Ends all tasks. */
  readonly signal: AbortSignal;
  readonly metrics?: MetricsRegistry;
  /** Of tasks that have none of their own. Default 250 ms, up to 30 s. */
  readonly retry?: RetryPauses;
  /** Numbers in [0, 1). Default Math.random. */
  readonly random?: () => number;
}

export interface Supervision {
  /** Resolves when every task has ended, after the signal aborted; it never rejects. */
  readonly done: Promise<void>;
  statuses(): readonly TaskStatus[];
}

/** Run tasks until the signal aborts, restarting each that fails after a jittered, bounded pause. */
export function superviseTasks(tasks: readonly Task[], options: SuperviseOptions): Supervision {
  // Each task listens to it for as long as it sleeps: however many there are, it is no leak.
  setMaxListeners(0, options.signal);
  const supervised = tasks.map((task) => new SupervisedTask(task, options));
  const statuses = () => supervised.map((it) => it.status());
  if (options.metrics !== undefined) exposeAges(options.metrics, statuses);
  return {
    done: Promise.all(supervised.map((it) => it.supervise())).then(() => {}),
    statuses,
  };
}

/** Tasks that run until they are closed. */
export interface RunningTasks {
  /** Abort them, and wait until all have ended. */
  close(): Promise<void>;
}

/** Run and supervise tasks until they are closed; see superviseTasks(). */
export function startTasks(tasks: readonly Task[], options: Omit<SuperviseOptions, "signal">): RunningTasks {
  const ending = new AbortController();
  const { done } = superviseTasks(tasks, { ...options, signal: ending.signal });
  return {
    close: async () => {
      ending.abort(new Error("the process is ending"));
      await done;
    },
  };
}

const DEFAULT_RETRY: RetryPauses = { baseMs: 250, maxMs: 30_000 };

class SupervisedTask {
  readonly #task: Task;
  readonly #options: SuperviseOptions;
  #state: TaskStatus["state"] = "running";
  #failures = 0;
  /** The record has been away since a failure that was logged. */
  #isAway = false;
  #successAtMs: number;

  constructor(task: Task, options: SuperviseOptions) {
    this.#task = task;
    this.#options = options;
    this.#successAtMs = options.clock.nowMs();
  }

  status(): TaskStatus {
    return {
      name: this.#task.name,
      state: this.#state,
      failures: this.#failures,
      sinceSuccessMs: this.#options.clock.nowMs() - this.#successAtMs,
    };
  }

  async supervise(): Promise<void> {
    const { signal, clock } = this.#options;
    while (!signal.aborted) {
      this.#state = "running";
      try {
        await this.#task.run(signal, this.#succeeded);
        break;
      } catch (error) {
        if (signal.aborted) break;
        this.#failures += 1;
        this.#state = "waiting";
        const pauseMs = this.#pauseMs();
        this.#tellFailure(error, pauseMs);
        this.#countFailure();
        // Rejects only when the signal aborts, which the loop's condition sees next.
        await clock.sleep(pauseMs, signal).catch(() => {});
      }
    }
    this.#state = "done";
    if (!signal.aborted) this.#options.log.info({ task: this.#task.name }, "task done");
  }

  readonly #succeeded = (): void => {
    const { name: task } = this.#task;
    if (this.#failures > 0) this.#options.log.info({ task, failures: this.#failures }, "task goes on");
    this.#failures = 0;
    this.#isAway = false;
    this.#successAtMs = this.#options.clock.nowMs();
  };

  /** At least half of the bound, so that a task that fails at once does not spin. */
  #pauseMs(): number {
    const { retry = DEFAULT_RETRY, random = Math.random } = this.#options;
    return halfJitter({ attempt: this.#failures - 1, ...(this.#task.retry ?? retry), random01: random() });
  }

  /** An outage of the record is one line, not one for each attempt. */
  #tellFailure(err: unknown, pauseMs: number): void {
    const { log } = this.#options;
    const fields = { task: this.#task.name, failures: this.#failures, pause_ms: pauseMs, err };
    const isAway = isStoreUnavailable(err) || reasonOf(err) === "OVERLOADED";
    if (!isAway) log.warn(fields, "task failed");
    else if (!this.#isAway) log.warn(fields, "task waits for the record");
    this.#isAway ||= isAway;
  }

  #countFailure(): void {
    if (this.#options.metrics === undefined) return;
    counter(this.#options.metrics, {
      name: "rollcall_task_failures_total",
      help: "Times that a background task failed and was started again.",
      labelNames: ["task"],
    }).inc({ task: this.#task.name });
  }
}

/** Tasks of several supervisors may share a registry, so each only adds its own ages when they are scraped. */
function exposeAges(registry: MetricsRegistry, statuses: () => readonly TaskStatus[]): void {
  const age = gauge(registry, {
    name: "rollcall_task_since_success_seconds",
    help: "Time since a background task last succeeded, or since it was first started.",
    labelNames: ["task"],
  });
  onScrape(registry, () => {
    for (const { name, state, sinceSuccessMs } of statuses()) {
      if (state === "done") age.remove({ task: name });
      else age.set({ task: name }, sinceSuccessMs / 1000);
    }
  });
}

/** What a loop does, and when. */
export interface LoopOptions extends Pick<Task, "name" | "retry"> {
  readonly clock: Clock;
  /** The longest pause between two turns; without it, a turn waits for a call. */
  readonly everyMs?: number;
  /** The shortest pause between two turns, which gathers calls into one. Default 0. */
  readonly gatherMs?: number;
  /** How long a call that is in no hurry waits for others. Default 0. */
  readonly soonMs?: number;
  /** Do the work that is due. A later turn does what a turn that throws leaves undone. */
  turn(signal: AbortSignal): Promise<void>;
}

const UNTIL_CALLED_MS = 24 * 60 * 60_000;

/** The one kind of loop: it takes a turn at once, and then whenever it is called or its time has come. */
export class Loop implements Task {
  readonly name: string;
  readonly retry: RetryPauses | undefined;
  readonly #options: LoopOptions;
  readonly #wakeUp = new WakeUp();

  constructor(options: LoopOptions) {
    this.name = options.name;
    this.retry = options.retry;
    this.#options = options;
  }

  /** Request a turn. */
  call(): void {
    this.#wakeUp.call();
  }

  /** Request a turn for what may wait for `soonMs`. */
  callSoon(): void {
    this.#wakeUp.callSoon();
  }

  async run(signal: AbortSignal, succeeded: () => void): Promise<void> {
    const { clock, everyMs: atMostMs = UNTIL_CALLED_MS, gatherMs: atLeastMs = 0, soonMs = 0, turn } = this.#options;
    while (!signal.aborted) {
      await turn(signal);
      succeeded();
      await this.#wakeUp.rest(clock, { atMostMs, atLeastMs, soonMs }, signal);
    }
  }
}
