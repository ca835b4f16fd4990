import { buildInfo } from "@rollcall/cli";
import { type Clock, gauge, type MetricsRegistry, onScrape } from "@rollcall/process";
import type { LeaseKeeper } from "@rollcall/store";
import type { ProcessPlan } from "../control-plane/process-plan.ts";

/** Show in a registry what runs in this process: always 1, with the build in its labels. */
export function exposeBuild(metrics: MetricsRegistry, { name }: Pick<ProcessPlan, "name">): void {
  const { version, commit = "", build = "" } = buildInfo();
  gauge(metrics, {
    name: "rollcall_build_info",
    help: "1; its labels say which build of Rollcall runs as which process, on which Node.js.",
    labelNames: ["version", "commit", "build", "node_version", "process"],
  }).set({ version, commit, build, node_version: process.versions.node, process: name }, 1);
}

/** Show how the lease of the process stands. */
export function exposeLease(
  metrics: MetricsRegistry,
  keeper: Pick<LeaseKeeper, "held" | "renewedAtMs">,
  clock: Pick<Clock, "nowMs">,
): void {
  const held = gauge(metrics, {
    name: "rollcall_lease_held",
    help: "Whether this process is certain to hold its own lease: 1 or 0.",
  });
  const age = gauge(metrics, {
    name: "rollcall_lease_age_seconds",
    help: "Time since this process last renewed its own lease, or since its start; it runs out after 10 s.",
  });
  const startedAtMs = clock.nowMs();
  onScrape(metrics, () => {
    held.set(keeper.held ? 1 : 0);
    age.set((clock.nowMs() - (keeper.renewedAtMs ?? startedAtMs)) / 1_000);
  });
}
