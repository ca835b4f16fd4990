import cluster from "node:cluster";
import { type Logger, systemClock } from "@rollcall/runtime";
import { endCrashedProcess, type Store } from "@rollcall/store";
import { WorkerPool } from "./worker-pool.ts";
import { workerEnvironment } from "./worker-role.ts";

/** What workers are started with. */
export interface OpenWorkersOptions {
  readonly count: number;
  /** The open record; that of the primary, when it has opened it. */
  readonly store: () => Store | null;
  /** Most connections to Postgres of each worker; as configured when absent. */
  readonly poolSize?: number;
  /** Environment besides that of this process. */
  readonly env: Readonly<Record<string, string>>;
  readonly log: Logger;
}

/** Prepare workers that run the same command line as this process. None is started yet. */
export function openWorkers(options: OpenWorkersOptions): WorkerPool {
  const { count, store, env, log, poolSize } = options;
  return new WorkerPool({
    count,
    fork: (number) => cluster.fork({ ...env, ...workerEnvironment({ number, poolSize }) }),
    onCrashed: async (instance) => {
      const record = store();
      if (record !== null) await endCrashedProcess(record, instance, "system");
    },
    clock: systemClock,
    log,
  });
}

/** Half of what Postgres takes by default is for all workers together: the rest is theirs beyond the pool, and everybody else's. */
export function sharedPoolSize(configured: number, workers: number): number {
  return Math.max(4, Math.min(configured, Math.floor(MOST_SHARED / workers)));
}

const MOST_SHARED = 60;
