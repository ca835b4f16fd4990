import cluster from "node:cluster";
import { type Logger, systemClock } from "@rollcall/process";
import { endCrashedProcess, type Store } from "@rollcall/store";
import type { PoolSizes } from "../control-plane/pool-sizes.ts";
import { withBundledLibraries } from "../start/bundled-libraries.ts";
import { WorkerPool } from "./worker-pool.ts";

/** What workers are started with. */
export interface OpenWorkersOptions {
  readonly count: number;
  /** The open record; that of the primary, when it has opened it. */
  readonly store: () => Store | null;
  /** Connections to Postgres of each worker; as configured when absent. */
  readonly pools?: PoolSizes;
  /** Environment besides that of this process. */
  readonly env: Readonly<Record<string, string>>;
  readonly log: Logger;
}

/** Prepare workers that run the same command line as this process. None is started yet. */
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

/** Not named like our variables: users do not set these. */
const NUMBER = "_ROLLCALL_WORKER";
const POOL = "_ROLLCALL_WORKER_POOL";

/** What a process is told that a primary has started. */
export interface WorkerRole {
  /** From 1. A worker that takes the place of one that crashed has its number. */
  readonly number: number;
  /** Its share of the connections to Postgres; undefined for as many as are configured. */
  readonly pools: PoolSizes | undefined;
}

/** The role of this process as a worker; null if it is not one. */
export function workerRole(env: Readonly<Record<string, string | undefined>>): WorkerRole | null {
  const { [NUMBER]: number, [POOL]: pool } = env;
  if (!cluster.isWorker || number === undefined) return null;
  return {
    number: Number(number),
    pools: pool === undefined ? undefined : (JSON.parse(pool) as PoolSizes),
  };
}

/** The environment of a worker that runs in the Node.js of its primary. */
export function workerEnvironment(
  { number, pools }: WorkerRole,
  env: Readonly<Record<string, string | undefined>>,
  execPath: string,
): Readonly<Record<string, string | undefined>> {
  const role = { [NUMBER]: String(number), ...(pools === undefined ? {} : { [POOL]: JSON.stringify(pools) }) };
  return withBundledLibraries({ ...env, ...role }, execPath);
}
