import cluster from "node:cluster";
import { type Logger, systemClock } from "@rollcall/process";
import { endCrashedProcess, type Store } from "@rollcall/store";
import type { PoolSizes } from "../control-plane/pool-sizes.ts";
import { withBundledLibraries } from "../start/bundled-libraries.ts";
import { WorkerPool } from "./worker-pool.ts";

export interface OpenWorkersOptions {
  readonly count: number;
  /** The primary's store, once it is open. */
  readonly store: () => Store | null;
  /** Postgres connections of each worker; as configured when absent. */
  readonly pools?: PoolSizes;
  /** Environment variables in addition to those of this process. */
  readonly env: Readonly<Record<string, string>>;
  readonly log: Logger;
}

/** Prepare workers that run the same command line as this process, without starting them. */
export function openWorkers(options: OpenWorkersOptions): WorkerPool {
  const { count, store, env, log, pools } = options;
  return new WorkerPool({
    count,
    fork: (number) => cluster.fork(workerEnvironment({ number, pools }, { ...process.env, ...env }, process.execPath)),
    onCrashed: async (instance) => {
      const record = store();
      if (record !== null) await endCrashedProcess(record.reserved, instance, "system");
    },
    clock: systemClock,
    log,
  });
}

/**
 * The variables that pass a worker's role. Users do not set them, so their names differ from those of our other
 * variables.
 */
const NUMBER = "_ROLLCALL_WORKER";
const POOL = "_ROLLCALL_WORKER_POOL";

/** The role that a primary gives a worker process. */
export interface WorkerRole {
  /** The number of the worker, counted from 1. A worker that replaces a crashed one gets the same number. */
  readonly number: number;
  /** The worker's share of the Postgres connections; undefined for the configured number. */
  readonly pools: PoolSizes | undefined;
}

/** The role of this process as a worker; null for other processes. */
export function workerRole(env: Readonly<Record<string, string | undefined>>): WorkerRole | null {
  const { [NUMBER]: number, [POOL]: pool } = env;
  if (!cluster.isWorker || number === undefined) return null;
  return {
    number: Number(number),
    pools: pool === undefined ? undefined : (JSON.parse(pool) as PoolSizes),
  };
}

/** The environment of a worker that runs with the same Node.js as its primary. */
export function workerEnvironment(
  { number, pools }: WorkerRole,
  env: Readonly<Record<string, string | undefined>>,
  execPath: string,
): Readonly<Record<string, string | undefined>> {
  const role = { [NUMBER]: String(number), ...(pools === undefined ? {} : { [POOL]: JSON.stringify(pools) }) };
  return withBundledLibraries({ ...env, ...role }, execPath);
}
