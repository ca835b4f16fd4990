import { NoiseTable } from "@rollcall/domain";
import type { TlsSource } from "@rollcall/identity";
import { type Clock, createMetrics, type Logger, type MetricsRegistry, renderMetrics } from "@rollcall/process";
import { createProbeServer, type HostRule, type ReadyCheck, StrangerLog } from "@rollcall/rpc";
import type { ProcessPlan } from "./process-plan.ts";

/**
 * The probes of one process. They answer before there is anything to probe, so that waiting for the record is not taken
 * for being dead.
 */
export interface Probes {
  readonly port: number;
  /** What `/metrics` shows. */
  readonly metrics: MetricsRegistry;
  /**
   * Until this is called, `/readyz` says that the process is starting. `render` is for metrics that are more than this
   * process's own.
   */
  answerWith(check: ReadyCheck, render?: (own: MetricsRegistry) => Promise<string>): void;
  close(): Promise<void>;
}

/** Serve `/livez`, `/readyz` and `/metrics` for a process that is about to start. Rejects when the port is taken. */
export async function openProbes(options: {
  readonly plan: ProcessPlan;
  readonly clock: Clock;
  readonly log: Logger;
  /** Which names /metrics is asked for by; any when absent. */
  readonly hosts?: HostRule;
  /** Speak TLS; in clear text when absent or null. */
  readonly tls?: TlsSource | null;
}): Promise<Probes> {
  const { plan, clock, log, hosts } = options;
  const metrics = createMetrics();
  let check: ReadyCheck = () => ({ record: { ok: false, message: "not open yet" } });
  const { host, probePort: port } = plan;
  const ready = () => check();
  let render = renderMetrics;
  const strangers = new StrangerLog({ log, clock, metrics, counts: new NoiseTable() });
  const answers = { ready, render: (own: MetricsRegistry) => render(own), hosts, strangers };
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
      strangers.close();
    },
  };
}
