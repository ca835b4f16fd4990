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
  /** Have the workers reload, where there are some. */
  reload?(): void;
  readonly port: number;
  readonly agentPort: number | null;
}

/** What several workers of an `up` stand on. */
export interface UpWorkersOptions {
  readonly plan: ProcessPlan;
  readonly config: ControlPlaneConfig;
  readonly store: Store;
  readonly probes: Probes;
  readonly tls: TlsSource | null;
  /** What the primary does besides. */
  readonly tasks: readonly Task[];
  /** Whether the Postgres is the one that `up` runs itself, whose connections are counted. */
  readonly isOwnRecord: boolean;
  readonly log: Logger;
}

/**
 * Start the services in several workers, each of which runs all of them; the primary keeps Postgres, the agent and the
 * certificate.
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
    log.warn({ workers: count }, "the embedded postgres may run out of connections, use fewer workers or Database.URL");
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

/** Run one worker of an `up`. Answers the exit code. */
export function runUpWorker(options: Omit<WorkerOptions, "plan" | "databaseUrl">): Promise<number> {
  const databaseUrl = options.config["Database.URL"];
  if (databaseUrl === undefined) throw new Error("a worker was not told where the record is");
  return runWorker({ ...options, plan: planUp(options.config), databaseUrl });
}
