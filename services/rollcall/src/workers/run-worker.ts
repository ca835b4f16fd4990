import { cliVersion } from "@rollcall/cli";
import type { TlsSource } from "@rollcall/identity";
import { type Logger, type Running, runProcess, systemClock } from "@rollcall/process";
import type { ControlPlaneConfig } from "../config/control-plane-config.ts";
import { openRecord } from "../control-plane/open-record.ts";
import { configuredPoolSizes } from "../control-plane/pool-sizes.ts";
import { type ProcessPlan, planWorker } from "../control-plane/process-plan.ts";
import { startControlPlane } from "../control-plane/start-control-plane.ts";
import { openWorkerLink } from "./worker-link.ts";
import type { WorkerRole } from "./worker-role.ts";

/** What a worker is run with. */
export interface WorkerOptions {
  readonly role: WorkerRole;
  /** The plan of all workers. */
  readonly plan: ProcessPlan;
  readonly config: ControlPlaneConfig;
  readonly databaseUrl: string;
  readonly tls: TlsSource | null;
  /** See ControlPlaneOptions. */
  readonly caFile: string | null;
  readonly process: NodeJS.Process;
  readonly log: Logger;
}

/** What a replica may need to hand its agents on, and to write what is not written. */
const WORKER_SHUTDOWN_DEADLINE_MS = 25_000;

/** Run one worker of several until its primary ends it. Answers the exit code. */
export async function runWorker(options: WorkerOptions): Promise<number> {
  const { role, config, tls, process } = options;
  const log = options.log.child({ worker: role.number });
  const plan = planWorker(options.plan, role.number);
  const link = openWorkerLink(process);
  if (tls !== null) process.on("SIGHUP", () => void tls.reload());
  const start = async (signal: AbortSignal): Promise<Running> => {
    const store = await openRecord(
      {
        url: options.databaseUrl,
        pools: role.pools ?? configuredPoolSizes(config),
        applicationName: `rollcall ${plan.name} worker ${role.number}`,
        log,
        clock: systemClock,
      },
      signal,
    );
    const common = { plan, config, store, tls, caFile: options.caFile, clock: systemClock, log };
    const running = await startControlPlane(
      {
        ...common,
        probes: link.probes,
        version: cliVersion(),
        onInstance: (instance) => link.tell({ kind: "instance", instance }),
      },
      signal,
    ).catch(async (error: unknown) => {
      await store.close();
      throw error;
    });
    const { port, agentPort } = running;
    log.info({ port, agent_port: agentPort }, "worker serving");
    link.tell({ kind: "serving", port, agentPort: agentPort ?? 0 });
    return {
      close: async () => {
        await running.close();
        await store.close();
      },
    };
  };
  const shutdownDeadlineMs = WORKER_SHUTDOWN_DEADLINE_MS;
  return runProcess({ process: link.process, log, start, shutdownDeadlineMs });
}
