import { cliVersion } from "@rollcall/cli";
import type { TlsSource } from "@rollcall/identity";
import { type Logger, type Parts, startParts, startTasks, systemClock } from "@rollcall/process";
import type { Store } from "@rollcall/store";
import type { ControlPlaneConfig } from "../config/control-plane-config.ts";
import { hostRule } from "../control-plane/host-rule.ts";
import { openProbes, type Probes } from "../control-plane/open-probes.ts";
import { openRecord, recordAddress } from "../control-plane/open-record.ts";
import type { ProcessPlan } from "../control-plane/process-plan.ts";
import { runServer } from "../run-server.ts";
import { openWorkers } from "./open-workers.ts";
import type { WorkerPool } from "./worker-pool.ts";

/** What a primary serves with. */
export interface ServeWorkersOptions {
  readonly plan: ProcessPlan;
  readonly config: ControlPlaneConfig;
  readonly databaseUrl: string;
  readonly tls: TlsSource | null;
  readonly process: NodeJS.Process;
  readonly log: Logger;
  /** What the primary does once with the open record, before a worker is started. */
  readonly onOpened: (store: Store) => Promise<void>;
  /** Called when all workers serve. */
  readonly onServing: () => void;
}

/** Longer than each worker has, and within what Kubernetes waits by default. */
const SHUTDOWN_DEADLINE_MS = 29_000;
/** It ends leases of crashed workers, and nothing else. */
const POOLS = { poolSize: 1, reservedPoolSize: 1 };

/** Run a service as several workers behind its ports, until SIGTERM or SIGINT. Answers the exit code. */
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
    const address = recordAddress(config, options.databaseUrl);
    const record = { address, pools: POOLS, log, clock: systemClock };
    const store = parts.add(await openRecord({ ...record, applicationName: `rollcall ${plan.name} primary` }, signal));
    await options.onOpened(store);
    // The workers watch the certificate of their ports themselves; this one is for the probes.
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
