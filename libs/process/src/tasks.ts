import { setMaxListeners } from "node:events";
import { isStoreUnavailable, reasonOf } from "@rollcall/errors";
import { halfJitter } from "./backoff.ts";
import type { Clock } from "./clock.ts";
import type { Logger } from "./logging.ts";
import { counter, gauge, type MetricsRegistry, onScrape } from "./metrics.ts";
import { WakeUp } from "./wake-up.ts";

/** A background task. It runs until a signal aborts, and ends soon afterwards. */
export interface Task {
  /** The task's name, constant and in kebab-case; used in logs and metrics. */
  readonly name: string;
  /** Delays after failures; defaults to the supervisor's. */
  readonly retry?: RetryPauses | undefined;
  /**
   * Work until the signal aborts. After an exception, the task is restarted after a delay; after a return, it is
   * done. Call `succeeded` after each successful iteration: it ends a series of failures and resets the time since
   * the last success.
   */
  run(signal: AbortSignal, succeeded: () => void): Promise<void>;
}

/** How long to wait after a failure. The first delay doubles with each further failure, up to the longest. */
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
  /** Time since the last success, or since the start if there was none. */
  readonly sinceSuccessMs: number;
}

export interface SuperviseOptions {
  readonly log: Logger;
  readonly clock: Clock;
  /** Aborting this signal ends all tasks. */
  readonly signal: AbortSignal;
  readonly metrics?: MetricsRegistry;
  /** Delays for tasks that define none. Default 250 ms, up to 30 s. */
  readonly retry?: RetryPauses;
  /** Returns random numbers in [0, 1). Default Math.random. */
  readonly random?: () => number;
}

export interface Supervision {
  /** Resolves when the signal has aborted and every task has ended; never rejects. */
  readonly done: Promise<void>;
  statuses(): readonly TaskStatus[];
}

/** Run tasks until the signal aborts. A task that fails is restarted after a jittered, bounded delay. */
export function superviseTasks(tasks: readonly Task[], options: SuperviseOptions): Supervision {
  // Allow any number of listeners, because every sleeping task listens to the signal.
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
  /** Abort the tasks and wait until all have ended. */
  close(): Promise<void>;
}

/** Run and supervise tasks until they are closed; see superviseTasks(). */
export function startTasks(tasks: readonly Task[], options: Omit<SuperviseOptions, "signal">): RunningTasks {
  const ending = new AbortController();
  const { done } = superviseTasks(tasks, { ...options, signal: ending.signal });
  return {
    close: async () => {
      ending.abort(new Error("the process is shutting down"));
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
  /** Whether a failure because of an unavailable store has been logged since the last success. */
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
        // Ignore the rejection, because sleep() rejects only when the signal aborts, which the loop's condition
        // checks next.
        await clock.sleep(pauseMs, signal).catch(() => {});
      }
    }
    this.#state = "done";
    if (!signal.aborted) this.#options.log.info({ task: this.#task.name }, "task done");
  }

  readonly #succeeded = (): void => {
    const { name: task } = this.#task;
    if (this.#failures > 0) this.#options.log.info({ task, failures: this.#failures }, "task continues");
    this.#failures = 0;
    this.#isAway = false;
    this.#successAtMs = this.#options.clock.nowMs();
  };

  /** At least half of the limit, so that a task that fails immediately does not cause a busy loop. */
  #pauseMs(): number {
    const { retry = DEFAULT_RETRY, random = Math.random } = this.#options;
    return halfJitter({ attempt: this.#failures - 1, ...(this.#task.retry ?? retry), random01: random() });
  }

  /** Log a failure. An outage of the store is logged once, not for each attempt. */
  #tellFailure(err: unknown, pauseMs: number): void {
    const { log } = this.#options;
    const fields = { task: this.#task.name, failures: this.#failures, pause_ms: pauseMs, err };
    const isAway = isStoreUnavailable(err) || reasonOf(err) === "OVERLOADED";
    if (!isAway) log.warn(fields, "task failed");
    else if (!this.#isAway) log.warn(fields, "task waits for the store");
    this.#isAway ||= isAway;
  }

  #countFailure(): void {
    if (this.#options.metrics === undefined) return;
    counter(this.#options.metrics, {
      name: "rollcall_task_failures_total",
      help: "Number of times a background task failed and was restarted.",
      labelNames: ["task"],
    }).inc({ task: this.#task.name });
  }
}

/** Expose the ages of one supervisor's tasks. Supervisors can share a registry. */
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

export interface LoopOptions extends Pick<Task, "name" | "retry"> {
  readonly clock: Clock;
  /** Maximum pause between two iterations. When absent, an iteration runs only when it is requested. */
  readonly everyMs?: number;
  /** Minimum pause between two iterations, so that one iteration handles several requests. Default 0. */
  readonly gatherMs?: number;
  /** How long a non-urgent request waits for others. Default 0. */
  readonly soonMs?: number;
  /** Do the pending work. If this throws, a later iteration does the remaining work. */
  turn(signal: AbortSignal): Promise<void>;
}

const UNTIL_CALLED_MS = 24 * 60 * 60_000;

/** Runs an iteration immediately, and then on request or after `everyMs`. */
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

  /** Request an iteration. */
  call(): void {
    this.#wakeUp.call();
  }

  /** Request an iteration that can wait for `soonMs`. */
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
