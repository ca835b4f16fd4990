import cluster from "node:cluster";
import { type Logger, systemClock } from "@rollcall/process";
import { endCrashedProcess, type Store } from "@rollcall/store";
import type { PoolSizes } from "../control-plane/pool-sizes.ts";
import { WorkerPool } from "./worker-pool.ts";
import { workerEnvironment } from "./worker-role.ts";

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
    fork: (number) => cluster.fork({ ...env, ...workerEnvironment({ number, pools }) }),
    onCrashed: async (instance) => {
      const record = store();
      if (record !== null) await endCrashedProcess(record.reserved, instance, "system");
    },
    clock: systemClock,
    log,
  });
}
