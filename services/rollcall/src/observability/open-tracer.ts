import { hostname } from "node:os";
import type { Clock, Logger, Tracer } from "@rollcall/process";
import type { ProcessConfig } from "../config/process-keys.ts";
import type { ProcessPlan } from "../control-plane/process-plan.ts";

/** Begin to trace calls when a collector is configured; null otherwise. Nothing waits for the collector. */
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
  // Loaded only where it is used: it takes memory and time.
  const { createOtlpTracer } = await import("@rollcall/process/tracing");
  const resource = {
    ...{ "service.namespace": "rollcall", "service.name": `rollcall-${name}`, "service.version": version },
    ...{ "service.instance.id": instance, "host.name": hostname() },
  };
  return createOtlpTracer({ endpoint, ratio: config["Tracing.SampleRatio"], resource, clock, log });
}
