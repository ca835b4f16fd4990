import { cliVersion } from "@rollcall/cli";
import type { TlsSource } from "@rollcall/identity";
import { type Logger, type Running, runProcess, superviseTasks, systemClock } from "@rollcall/process";
import type { ControlPlaneConfig } from "../config/control-plane-config.ts";
import { hostRule } from "../control-plane/host-rule.ts";
import { openProbes, type Probes } from "../control-plane/open-probes.ts";
import { openRecord } from "../control-plane/open-record.ts";
import type { ProcessPlan } from "../control-plane/process-plan.ts";
import { openWorkers } from "./open-workers.ts";

/** What a primary serves with. */
export interface ServeWorkersOptions {
  readonly plan: ProcessPlan;
  readonly config: ControlPlaneConfig;
  readonly databaseUrl: string;
  readonly tls: TlsSource | null;
  readonly process: NodeJS.Process;
  readonly log: Logger;
}

/** Longer than each worker has, and within what Kubernetes waits by default. */
const SHUTDOWN_DEADLINE_MS = 29_000;
/** It ends leases of crashed workers, and nothing else. */
const POOLS = { poolSize: 1, reservedPoolSize: 1 };

/** Run a service as several workers behind its ports, until SIGTERM or SIGINT. Answers the exit code. */
export async function serveWorkers(options: ServeWorkersOptions): Promise<number> {
  const { plan, config, log, process } = options;
  const ending = { ...options, shutdownDeadlineMs: SHUTDOWN_DEADLINE_MS };
  const start = async (signal: AbortSignal): Promise<Running> => {
    let store: Awaited<ReturnType<typeof openRecord>> | null = null;
    const count = config["Health.Workers"];
    const pool = openWorkers({ count, store: () => store, env: {}, log });
    if (options.tls !== null) process.on("SIGHUP", () => pool.signal("SIGHUP"));
    const probes = await openProbes({
      plan,
      clock: systemClock,
      log,
      tls: config["TLS.Probes"] ? options.tls : null,
      hosts: hostRule(config, options.tls),
    });
    const watching = new AbortController();
    const watched = { log, clock: systemClock, signal: watching.signal };
    // The workers watch the certificate of their ports themselves; this one is for the probes.
    const { done } = superviseTasks(options.tls === null ? [] : [options.tls.task], watched);
    const close = async () => {
      await pool.close();
      watching.abort(new Error("the process is ending"));
      await done;
      await store?.close();
      await probes.close();
    };
    try {
      const record = { url: options.databaseUrl, pools: POOLS, log, clock: systemClock };
      store = await openRecord({ ...record, applicationName: `rollcall ${plan.name} primary` }, signal);
      const { port, agentPort } = await pool.start(signal);
      probes.answerWith(
        () => pool.ready(),
        (own) => pool.metrics(own),
      );
      sayServing(log, { plan, workers: count, port, agentPort, probes });
      return { close };
    } catch (error) {
      await close();
      throw error;
    }
  };
  return runProcess({ ...ending, start });
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
