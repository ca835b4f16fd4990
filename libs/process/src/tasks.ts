import { setMaxListeners } from "node:events";
import { halfJitter } from "./backoff.ts";
import type { Clock } from "./clock.ts";
import type { Logger } from "./logging.ts";
import { counter, gauge, type MetricsRegistry, onScrape } from "./metrics.ts";

/** A piece of background work: a function of an abort signal that ends soon after the signal aborts. */
export interface Task {
  /** Constant, kebab-case; the log and the metrics carry it. */
  readonly name: string;
  /**
   * Work until the signal aborts. To throw is to be started again after a while; to return is to be done for good.
   * `succeeded` notes that a turn of the work went well: it ends a series of failures and resets the age.
   */
  run(signal: AbortSignal, succeeded: () => void): Promise<void>;
}

/** How a task fares. */
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
  /** First pause after a failure; it doubles with each further one. Default 250 ms. */
  readonly backoffBaseMs?: number;
  /** Longest pause. Default 30 s. */
  readonly backoffMaxMs?: number;
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

class SupervisedTask {
  readonly #task: Task;
  readonly #options: SuperviseOptions;
  #state: TaskStatus["state"] = "running";
  #failures = 0;
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
    const { signal, log, clock } = this.#options;
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
        log.warn({ task: this.#task.name, failures: this.#failures, pause_ms: pauseMs, err: error }, "task failed");
        this.#countFailure();
        // Rejects only when the signal aborts, which the loop's condition sees next.
        await clock.sleep(pauseMs, signal).catch(() => {});
      }
    }
    this.#state = "done";
    if (!signal.aborted) log.info({ task: this.#task.name }, "task done");
  }

  readonly #succeeded = (): void => {
    this.#failures = 0;
    this.#successAtMs = this.#options.clock.nowMs();
  };

  /** At least half of the bound, so that a task that fails at once does not spin. */
  #pauseMs(): number {
    const { backoffBaseMs = 250, backoffMaxMs = 30_000, random = Math.random } = this.#options;
    const limits = { baseMs: backoffBaseMs, maxMs: backoffMaxMs };
    return halfJitter({ attempt: this.#failures - 1, ...limits, random01: random() });
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

/** What a periodic task does each time. */
export interface PeriodicTask {
  readonly name: string;
  readonly everyMs: number;
  readonly clock: Clock;
  /** One turn. To throw is a failure: the supervisor starts the task again after a pause. */
  turn(signal: AbortSignal): Promise<void>;
}

/** A task that takes a turn at once and then again and again, each `everyMs` after the end of the one before. */
export function periodicTask({ name, everyMs, clock, turn }: PeriodicTask): Task {
  return {
    name,
    run: async (signal, succeeded) => {
      while (!signal.aborted) {
        await turn(signal);
        succeeded();
        await clock.sleep(everyMs, signal);
      }
    },
  };
}
