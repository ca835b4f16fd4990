import type { Command } from "commander";
import type { Shell } from "../shell.ts";
import { lazily } from "./lazily.ts";

/** Add `status`. */
export function addStatusCommand(program: Command, shell: Shell): void {
  program
    .command("status")
    .description(
      "show how the control plane fares: nodes in numbers, brakes that hold, processes, the log, its relay to NATS, upkeep",
    )
    .addHelpText(
      "after",
      '\n--output json|yaml prints {"summary", "processes", "status", "brake"}: a rollcall.registry.v1.GetClusterSummaryResponse, a list of\nrollcall.node.v1.Node, a rollcall.registry.v1.GetControlPlaneStatusResponse and, unless admin is away, a\nrollcall.admin.v1.GetBrakeResponse in proto JSON.',
    )
    .action(lazily(shell, async () => (await import("../verbs/status.ts")).status));
}
