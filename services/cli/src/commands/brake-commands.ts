import type { Command } from "commander";
import type { Shell } from "../shell.ts";
import type { BrakeFreezeOptions } from "../verbs/brake-freeze.ts";
import type { BrakeReleaseOptions } from "../verbs/brake-release.ts";
import type { BrakeStatusOptions } from "../verbs/brake-status.ts";
import { lazily } from "./lazily.ts";

/** Add `brake` and its verbs. */
export function addBrakeCommands(program: Command, shell: Shell): void {
  const brake = program
    .command("brake")
    .description("see and overrule what holds reactions back when many nodes are lost at once");
  addStatus(brake, shell);
  addFreeze(brake, shell);
  addRelease(brake, shell);
}

function addStatus(brake: Command, shell: Shell): void {
  brake
    .command("status")
    .description("show the brake of the cluster and of every group")
    .option("--group <group>", "only this one: cluster, or for example zone=a")
    .option("--hide-header", "leave the headings out")
    .addHelpText(
      "after",
      `
NORMAL     every reaction to a lost node is released, a few seconds after the loss
PARTIAL    more than 55 % of the group are silent or were lost: a tenth of the group's size is released a minute
FULL       all of it is: nothing is released
FROZEN     nothing is released, because an operator said so

--output json|yaml prints a rollcall.admin.v1.GetBrakeResponse in proto JSON; --output csv prints RFC 4180.`,
    )
    .action(lazily<BrakeStatusOptions>(shell, async () => (await import("../verbs/brake-status.ts")).brakeStatus));
}

function addCommandOptions(command: Command): Command {
  return command
    .option("--group <group>", "for example zone=a (default: cluster)")
    .option("-m, --message <reason>", "why, for people")
    .option("--request-id <id>", "the same id twice has one effect and the same answer");
}

function addFreeze(brake: Command, shell: Shell): void {
  addCommandOptions(brake.command("freeze").description("hold back every reaction until it is released"))
    .addHelpText(
      "after",
      `
Before work on a zone's network, for example:

  rollcall brake freeze --group zone=a -m "switch replaced, 10 minutes"

--output json|yaml prints a rollcall.admin.v1.FreezeReactionsResponse in proto JSON.`,
    )
    .action(lazily<BrakeFreezeOptions>(shell, async () => (await import("../verbs/brake-freeze.ts")).brakeFreeze));
}

function addRelease(brake: Command, shell: Shell): void {
  addCommandOptions(brake.command("release").description("lift a freeze: the brake decides by itself again"))
    .option("--now", "let everything go that is pending now, whatever the brake says")
    .option("--yes", "with --now: do not ask first")
    .addHelpText(
      "after",
      `
With --now and without --group, the reactions of all groups go that are not frozen themselves. What is lost later is judged anew.

--output json|yaml prints a rollcall.admin.v1.ReleaseReactionsResponse in proto JSON.`,
    )
    .action(lazily<BrakeReleaseOptions>(shell, async () => (await import("../verbs/brake-release.ts")).brakeRelease));
}
