import { hostname } from "node:os";
import { buildInfo } from "@rollcall/cli";
import { type Clock, gauge, type Logger, type MetricsRegistry, onScrape, type Tracer } from "@rollcall/process";
import type { LeaseKeeper } from "@rollcall/store";
import type { ProcessConfig } from "../config/process-keys.ts";
import type { ProcessPlan } from "../control-plane/process-plan.ts";

/** Export the metric that describes this process: its value is always 1, and its labels have the build. */
export function exposeBuild(metrics: MetricsRegistry, { name }: Pick<ProcessPlan, "name">): void {
  const { version, commit = "", build = "" } = buildInfo();
  gauge(metrics, {
    name: "rollcall_build_info",
    help: "Always 1; its labels name the build of Rollcall, the process and the version of Node.js.",
    labelNames: ["version", "commit", "build", "node_version", "process"],
  }).set({ version, commit, build, node_version: process.versions.node, process: name }, 1);
}

/** Export the state of the process's lease. */
export function exposeLease(
  metrics: MetricsRegistry,
  keeper: Pick<LeaseKeeper, "held" | "renewedAtMs">,
  clock: Pick<Clock, "nowMs">,
): void {
  const held = gauge(metrics, {
    name: "rollcall_lease_held",
    help: "Whether this process is certain that it holds its own lease: 1 or 0.",
  });
  const age = gauge(metrics, {
    name: "rollcall_lease_age_seconds",
    help: "Time since this process last renewed its own lease, or since it started. The lease expires after 10 s.",
  });
  const startedAtMs = clock.nowMs();
  onScrape(metrics, () => {
    held.set(keeper.held ? 1 : 0);
    age.set((clock.nowMs() - (keeper.renewedAtMs ?? startedAtMs)) / 1_000);
  });
}

/** Start tracing calls if a collector is configured; otherwise return null. Nothing waits for the collector. */
export async function openTracer(
  { name }: Pick<ProcessPlan, "name">,
  {
    config,
    instance,
    version,
    clock,
    log,
  }: {
    readonly config: Pick<ProcessConfig, "Tracing.Endpoint" | "Tracing.SampleRatio">;
    readonly instance: string;
    readonly version: string;
    readonly clock: Clock;
    readonly log: Logger;
  },
): Promise<Tracer | null> {
  const endpoint = config["Tracing.Endpoint"];
  if (endpoint === undefined) return null;
  // Import this module only when it is used, because it takes memory and time.
  const { createOtlpTracer } = await import("@rollcall/process/tracing");
  const resource = {
    ...{ "service.namespace": "rollcall", "service.name": `rollcall-${name}`, "service.version": version },
    ...{ "service.instance.id": instance, "host.name": hostname() },
  };
  return createOtlpTracer({ endpoint, ratio: config["Tracing.SampleRatio"], resource, clock, log });
}
