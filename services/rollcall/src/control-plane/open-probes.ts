import { NoiseTable } from "@rollcall/domain";
import type { TlsSource } from "@rollcall/identity";
import { type Clock, createMetrics, type Logger, type MetricsRegistry, renderMetrics } from "@rollcall/process";
import { AnonymousLog, createProbeServer, type HostRule, type ReadyCheck } from "@rollcall/rpc";
import type { ProcessPlan } from "./process-plan.ts";

/**
 * The probes of one process. They respond while the process is still starting, so that a process that waits for the
 * database is not restarted as dead.
 */
export interface Probes {
  readonly port: number;
  /** The metrics that `/metrics` returns. */
  readonly metrics: MetricsRegistry;
  /**
   * Serve `/readyz` with `check`. Before this call, `/readyz` reports that the process is starting. `render`
   * produces metrics of more than this process.
   */
  answerWith(check: ReadyCheck, render?: (own: MetricsRegistry) => Promise<string>): void;
  close(): Promise<void>;
}

/** Serve `/livez`, `/readyz` and `/metrics` for a process that is starting. Rejects when the port is in use. */
export async function openProbes(options: {
  readonly plan: ProcessPlan;
  readonly clock: Clock;
  readonly log: Logger;
  /** The host names allowed for /metrics; any when absent. */
  readonly hosts?: HostRule;
  /** The certificate; clear text when absent or null. */
  readonly tls?: TlsSource | null;
}): Promise<Probes> {
  const { plan, clock, log, hosts } = options;
  const metrics = createMetrics();
  let check: ReadyCheck = () => ({ record: { ok: false, message: "not open yet" } });
  const { host, probePort: port } = plan;
  const ready = () => check();
  let render = renderMetrics;
  const anonymousClients = new AnonymousLog({ log, clock, metrics, counts: new NoiseTable() });
  const answers = { ready, render: (own: MetricsRegistry) => render(own), hosts, anonymousClients };
  const tls = options.tls ? { tls: options.tls } : {};
  const server = await createProbeServer({ host, port, metrics, clock, log, ...answers, ...tls });
  return {
    port: server.port,
    metrics,
    answerWith: (next, nextRender = renderMetrics) => {
      check = next;
      render = nextRender;
    },
    close: async () => {
      await server.close();
      anonymousClients.close();
    },
  };
}
