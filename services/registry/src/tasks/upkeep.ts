import { counter, gauge, type Logger, type MetricsRegistry } from "@rollcall/process";
import {
  beginUpkeepRun,
  endUpkeepRun,
  type LeasedTask,
  leasedTask,
  listUpkeepRuns,
  type ReservedStore,
} from "@rollcall/store";
import { type Logger as CronLogger, createTask, type ScheduledTask } from "node-cron";
import type { RegistryProcess } from "../registry-process.ts";

/** One kind of upkeep. */
export interface Chore {
  readonly name: string;
  /** A cron schedule; six fields include seconds. */
  readonly schedule: string;
  /** A registry that takes over upkeep runs the chore immediately if its last run started longer ago than this. */
  readonly overdueAfterMs: number;
  /** Run the chore. Returns the number of deleted rows. */
  run(signal: AbortSignal): Promise<number>;
}

/** The inputs for upkeep. */
export interface UpkeepOptions extends Pick<RegistryProcess, "store" | "clock" | "log" | "metrics" | "instance"> {
  readonly chores: readonly Chore[];
  /** Called when this process starts doing upkeep. */
  readonly onHeld?: () => void;
  /** See LeasedTaskOptions. */
  readonly renewEveryMs?: number;
  readonly expiryMs?: number;
}

/** Delete expired data on schedule, in only one registry of the cluster, and record each run. */
export function upkeep(services: UpkeepOptions): LeasedTask {
  const { clock, log, instance, chores, onHeld, renewEveryMs, expiryMs } = services;
  const store = services.store.reserved;
  const runner = new ChoreRunner(services);
  return leasedTask({
    ...{ store, clock, log },
    ...(renewEveryMs === undefined ? {} : { renewEveryMs }),
    ...(expiryMs === undefined ? {} : { expiryMs }),
    claim: { name: "upkeep", instance, service: "registry", address: "" },
    work: async (signal, succeeded) => {
      onHeld?.();
      const logger = cronLogger(log);
      const tasks = chores.map((chore) =>
        createTask(chore.schedule, () => runner.run(chore, signal, succeeded), {
          ...{
            name: chore.name,
            noOverlap: true,
            logger,
            suppressMissedWarning: true,
            unref: true,
          },
        }),
      );
      try {
        for (const chore of await overdue(store, chores, clock.wallMs())) {
          if (!signal.aborted) await runner.run(chore, signal, succeeded);
        }
        for (const task of tasks) await task.start();
        await aborted(signal);
      } finally {
        await Promise.all(tasks.map(end));
        await runner.idle();
      }
    },
  });
}

/** Runs chores and records their outcomes. Each chore runs at most once at a time. */
class ChoreRunner {
  readonly #store: ReservedStore;
  readonly #instance: string;
  readonly #log: Logger;
  readonly #metrics: ReturnType<typeof upkeepMetrics>;
  readonly #running = new Set<Promise<void>>();

  constructor({ store, instance, log, metrics }: UpkeepOptions) {
    this.#store = store.reserved;
    this.#instance = instance;
    this.#log = log;
    this.#metrics = upkeepMetrics(metrics);
  }

  /** Run a chore. Never rejects: a failed chore runs again on schedule. */
  run(chore: Chore, signal: AbortSignal, succeeded: () => void): Promise<void> {
    const running = this.#run(chore, signal)
      .then(succeeded, (err: unknown) => this.#log.warn({ err, chore: chore.name }, "cannot record a run of upkeep"))
      .finally(() => this.#running.delete(running));
    this.#running.add(running);
    return running;
  }

  /** Resolves when no chore is running. */
  async idle(): Promise<void> {
    await Promise.all(this.#running);
  }

  async #run(chore: Chore, signal: AbortSignal): Promise<void> {
    const { db } = this.#store;
    const { name } = chore;
    const run = { name, instance: this.#instance };
    const stop = this.#metrics.seconds.startTimer({ chore: name });
    await beginUpkeepRun(db, name, this.#instance);
    try {
      const rows = await chore.run(signal);
      await endUpkeepRun(db, { ...run, outcome: "SUCCEEDED", rows: BigInt(rows), message: "" });
      this.#metrics.rows.inc({ chore: name }, rows);
      this.#metrics.runs.inc({ chore: name, outcome: "succeeded" });
      this.#log.debug({ chore: name, rows }, "upkeep done");
    } catch (err) {
      this.#metrics.runs.inc({ chore: name, outcome: "failed" });
      this.#log.warn({ err, chore: name }, "upkeep failed");
      // Do not store the driver's message, which is only for the log.
      const message = `failed; see the log of ${this.#instance}`;
      await endUpkeepRun(db, { ...run, outcome: "FAILED", rows: 0n, message });
    } finally {
      stop();
    }
  }
}

async function overdue(store: ReservedStore, chores: readonly Chore[], nowMs: number): Promise<readonly Chore[]> {
  const runs = new Map((await listUpkeepRuns(store.db)).map((run) => [run.name, run]));
  return chores.filter(({ name, overdueAfterMs }) => {
    const run = runs.get(name);
    return run?.outcome !== "SUCCEEDED" || nowMs - run.startedAtMs >= overdueAfterMs;
  });
}

async function end(task: ScheduledTask): Promise<void> {
  await task.stop();
  await task.destroy();
}

function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
}

function cronLogger(log: Logger): CronLogger {
  const say = (message: string | Error) => log.warn({ detail: String(message) }, "upkeep schedule");
  return { info: () => {}, debug: () => {}, warn: say, error: say };
}

function upkeepMetrics(metrics: MetricsRegistry) {
  return {
    runs: counter(metrics, {
      name: "rollcall_upkeep_runs_total",
      help: "Number of finished upkeep runs in this process, by task and outcome.",
      labelNames: ["chore", "outcome"],
    }),
    rows: counter(metrics, {
      name: "rollcall_upkeep_rows_total",
      help: "Number of rows that upkeep deleted in this process, by task.",
      labelNames: ["chore"],
    }),
    seconds: gauge(metrics, {
      name: "rollcall_upkeep_last_run_seconds",
      help: "Duration of the last run of an upkeep task in this process.",
      labelNames: ["chore"],
    }),
  };
}
