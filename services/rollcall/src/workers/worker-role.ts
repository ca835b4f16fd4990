import cluster from "node:cluster";
import type { PoolSizes } from "../control-plane/pool-sizes.ts";

/** Not named like our variables: none of these is anybody's to set. */
const NUMBER = "_ROLLCALL_WORKER";
const POOL = "_ROLLCALL_WORKER_POOL";

/** What a process is told that a primary has started. */
export interface WorkerRole {
  /** From 1. A worker that takes the place of one that crashed has its number. */
  readonly number: number;
  /** Its share of the connections to Postgres; undefined for as many as are configured. */
  readonly pools: PoolSizes | undefined;
}

/** The role of this process as a worker; null when it is none. */
export function workerRole(env: Readonly<Record<string, string | undefined>>): WorkerRole | null {
  const { [NUMBER]: number, [POOL]: pool } = env;
  if (!cluster.isWorker || number === undefined) return null;
  return {
    number: Number(number),
    pools: pool === undefined ? undefined : (JSON.parse(pool) as PoolSizes),
  };
}

/** The environment of a worker, besides its primary's. */
export function workerEnvironment({ number, pools }: WorkerRole): Record<string, string> {
  return {
    [NUMBER]: String(number),
    ...(pools === undefined ? {} : { [POOL]: JSON.stringify(pools) }),
  };
}
