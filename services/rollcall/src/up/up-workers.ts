import type { TlsSource } from "@rollcall/identity";
import {
  type Logger,
  type Parts,
  type Running,
  startParts,
  startTasks,
  systemClock,
  type Task,
} from "@rollcall/process";
import type { Store } from "@rollcall/store";
import type { ControlPlaneConfig } from "../config/control-plane-config.ts";
import type { Probes } from "../control-plane/open-probes.ts";
import { configuredPoolSizes, fitsEmbeddedPostgres, sharedPoolSizes } from "../control-plane/pool-sizes.ts";
import { type ProcessPlan, planUp } from "../control-plane/process-plan.ts";
import { openWorkers } from "../workers/open-workers.ts";
import { runWorker, type WorkerOptions } from "../workers/run-worker.ts";

/** The services of an `up`, in one process or in several. */
export interface UpServices extends Running {
  /** Let the workers reload, if there are any. */
  reload?(): void;
  readonly port: number;
  readonly agentPort: number | null;
}

export interface UpWorkersOptions {
  readonly plan: ProcessPlan;
  readonly config: ControlPlaneConfig;
  readonly store: Store;
  readonly probes: Probes;
  readonly tls: TlsSource | null;
  /** Tasks of the primary in addition to those of the workers. */
  readonly tasks: readonly Task[];
  /** Whether `up` runs this Postgres itself, whose number of connections is limited. */
  readonly isOwnRecord: boolean;
  readonly log: Logger;
}

/**
 * Start several workers, each with all services. The primary runs Postgres and the agent, and renews the certificate.
 */
export function upWorkers(options: UpWorkersOptions, signal: AbortSignal): Promise<UpServices> {
  return startParts((parts) => start(options, signal, parts));
}

async function start(
  { plan, config, store, probes, tls, tasks, isOwnRecord, log }: UpWorkersOptions,
  signal: AbortSignal,
  parts: Parts,
) {
  const count = config["Health.Workers"];
  const pools = sharedPoolSizes(configuredPoolSizes(config), count);
  if (isOwnRecord && !fitsEmbeddedPostgres(count)) {
    log.warn(
      { workers: count },
      "the embedded Postgres may run out of connections; use fewer workers or set Database.URL",
    );
  }
  const pool = parts.add(
    openWorkers({
      count,
      store: () => store,
      ...(isOwnRecord ? { pools } : {}),
      env: { DATABASE_URL: store.address.url },
      log,
    }),
  );
  const ports = await pool.start(signal);
  probes.answerWith(
    () => pool.ready(),
    (own) => pool.metrics(own),
  );
  parts.add(startTasks(tls === null ? tasks : [tls.task, ...tasks], { log, clock: systemClock }));
  log.info({ plan: plan.name, workers: count, ...ports }, "workers serving");
  return { port: ports.port, agentPort: ports.agentPort, reload: () => pool.reload() };
}

/** Run one worker of an `up`. Returns the exit code. */
export function runUpWorker(options: Omit<WorkerOptions, "plan" | "databaseUrl">): Promise<number> {
  const databaseUrl = options.config["Database.URL"];
  if (databaseUrl === undefined) throw new Error("the worker has no Database.URL");
  return runWorker({ ...options, plan: planUp(options.config), databaseUrl });
}
