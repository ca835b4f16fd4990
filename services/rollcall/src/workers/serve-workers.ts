import { cliVersion } from "@rollcall/cli";
import type { TlsSource } from "@rollcall/identity";
import { type Logger, type Parts, startParts, startTasks, systemClock } from "@rollcall/process";
import type { Store } from "@rollcall/store";
import type { ControlPlaneConfig } from "../config/control-plane-config.ts";
import { connectStore, storeAddress } from "../control-plane/connect-store.ts";
import { hostRule } from "../control-plane/host-rule.ts";
import { openProbes, type Probes } from "../control-plane/open-probes.ts";
import type { ProcessPlan } from "../control-plane/process-plan.ts";
import { runServer } from "../run-server.ts";
import { openWorkers } from "./open-workers.ts";
import type { WorkerPool } from "./worker-pool.ts";

export interface ServeWorkersOptions {
  readonly plan: ProcessPlan;
  readonly config: ControlPlaneConfig;
  readonly databaseUrl: string;
  readonly tls: TlsSource | null;
  readonly process: NodeJS.Process;
  readonly log: Logger;
  /** Called once with the open store before any worker starts. */
  readonly onOpened: (store: Store) => Promise<void>;
  /** Called when all workers serve. */
  readonly onServing: () => void;
}

/**
 * Time limit of the shutdown, longer than the deadline of each worker, and shorter than Kubernetes' default
 * grace period.
 */
const SHUTDOWN_DEADLINE_MS = 29_000;
/**
 * Pool sizes of the primary. They are small, because the primary only ends the leases of crashed workers.
 */
const POOLS = { poolSize: 1, reservedPoolSize: 1 };

/** Run a service as several workers that share its ports, until SIGTERM or SIGINT. Returns the exit code. */
export async function serveWorkers(options: ServeWorkersOptions): Promise<number> {
  const { plan, config, log } = options;
  let workers: WorkerPool | null = null;
  const { tls } = options;
  const reload = async () => {
    workers?.reload();
    await tls?.reload();
  };
  const ending = { ...options, shutdownDeadlineMs: SHUTDOWN_DEADLINE_MS, ...(tls !== null && { reload }) };
  const start = async (signal: AbortSignal, parts: Parts) => {
    const hosts = hostRule(config, options.tls);
    const probesTls = config["TLS.Probes"] ? options.tls : null;
    const probes = parts.add(await openProbes({ plan, clock: systemClock, log, tls: probesTls, hosts }));
    const address = storeAddress(config, options.databaseUrl);
    const record = { address, pools: POOLS, log, clock: systemClock };
    const store = parts.add(
      await connectStore({ ...record, applicationName: `rollcall ${plan.name} primary` }, signal),
    );
    await options.onOpened(store);
    // Watch the certificate for the probes. Workers watch the certificate of their ports themselves.
    parts.add(startTasks(options.tls === null ? [] : [options.tls.task], { log, clock: systemClock }));
    const count = config["Health.Workers"];
    const pool = parts.add(openWorkers({ count, store: () => store, env: {}, log }));
    workers = pool;
    const { port, agentPort } = await pool.start(signal);
    probes.answerWith(
      () => pool.ready(),
      (own) => pool.metrics(own),
    );
    sayServing(log, { plan, workers: count, port, agentPort, probes });
    options.onServing();
    return {};
  };
  return runServer({ ...ending, start: (signal) => startParts((parts) => start(signal, parts)) });
}

function sayServing(
  log: Logger,
  facts: {
    readonly plan: ProcessPlan;
    readonly workers: number;
    readonly port: number;
    readonly agentPort: number;
    readonly probes: Probes;
  },
): void {
  const { plan, workers, port, agentPort, probes } = facts;
  const fields = { host: plan.host, port, agent_port: agentPort, probe_port: probes.port, workers };
  log.info({ version: cliVersion(), ...fields }, "serving");
}
