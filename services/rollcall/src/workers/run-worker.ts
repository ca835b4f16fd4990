import { cliVersion } from "@rollcall/cli";
import type { TlsSource } from "@rollcall/identity";
import { type Logger, type Parts, runProcess, startParts, systemClock } from "@rollcall/process";
import type { ControlPlaneConfig } from "../config/control-plane-config.ts";
import { connectStore, storeAddress } from "../control-plane/connect-store.ts";
import { configuredPoolSizes } from "../control-plane/pool-sizes.ts";
import { type ProcessPlan, planWorker } from "../control-plane/process-plan.ts";
import { startControlPlane } from "../control-plane/start-control-plane.ts";
import type { WorkerRole } from "./open-workers.ts";
import { openWorkerLink } from "./worker-link.ts";

export interface WorkerOptions {
  readonly role: WorkerRole;
  /** The plan that all workers share. */
  readonly plan: ProcessPlan;
  readonly config: ControlPlaneConfig;
  readonly databaseUrl: string;
  readonly tls: TlsSource | null;
  /** See ControlPlaneOptions. */
  readonly caFile: string | null;
  readonly process: NodeJS.Process;
  readonly log: Logger;
}

/** Time limit for a replica to hand over its agents and write pending changes. */
const WORKER_SHUTDOWN_DEADLINE_MS = 25_000;

/** Run one of several workers until its primary stops it. Returns the exit code. */
export async function runWorker(options: WorkerOptions): Promise<number> {
  const { role, config, tls, process } = options;
  const log = options.log.child({ worker: role.number });
  const plan = planWorker(options.plan, role.number);
  const link = openWorkerLink(process);
  const start = async (signal: AbortSignal, parts: Parts) => {
    const record = {
      address: storeAddress(config, options.databaseUrl),
      pools: role.pools ?? configuredPoolSizes(config),
      applicationName: `rollcall ${plan.name} worker ${role.number}`,
    };
    const store = parts.add(await connectStore({ ...record, log, clock: systemClock }, signal));
    const common = { plan, config, store, tls, caFile: options.caFile, clock: systemClock, log };
    const onInstance = (instance: string) => link.tell({ kind: "instance", instance });
    const { port, agentPort } = parts.add(
      await startControlPlane({ ...common, probes: link.probes, version: cliVersion(), onInstance }, signal),
    );
    log.info({ port, agent_port: agentPort }, "worker serving");
    link.tell({ kind: "serving", port, agentPort: agentPort ?? 0 });
    return {};
  };
  const shutdownDeadlineMs = WORKER_SHUTDOWN_DEADLINE_MS;
  return runProcess({
    process: link.process,
    log,
    start: (signal) => startParts((parts) => start(signal, parts)),
    shutdownDeadlineMs,
    ...(tls !== null && { reload: () => tls.reload() }),
  });
}
