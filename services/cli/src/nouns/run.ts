import type { Command } from "commander";
import { action, addNotes, loaded } from "../command.ts";
import type { RunOptions } from "../jobs/run-command.ts";
import type { Shell } from "../shell.ts";

/** Define `run`. */
export function defineRun(run: Command, shell: Shell): void {
  run
    .argument("[command...]", "Program and arguments, after --")
    .option("--name <name>", "Name of the job (default: the program's name and a random suffix)")
    .option("--selector <selector>", "Only on nodes whose labels match, in the syntax of Kubernetes")
    .option("--node <node>", "Only on this node, by its exact id")
    .option("--cores <number>", "Processors to reserve, for example 0.5")
    .option("--memory <bytes>", "Memory to reserve, for example 512Mi; also the limit, where the node can enforce one")
    .option("--disk <bytes>", "Disk to reserve, for example 2Gi")
    .option("--gpus <count>", "GPUs to reserve for this command only")
    .option("--gpu-model <text>", "Part of the model name of each GPU, for example h100")
    .option("-e, --env <name=value...>", "Environment variables of the command")
    .option("--directory <path>", "Working directory; the agent must allow it")
    .option("--user <user>", "User to run as; the agent must allow it")
    .option("--image <image>", "Run the command in a container of this image")
    .option("--queue-timeout <duration>", "How long to wait for a suitable node (default: fail at once)")
    .option("--max-run-time <duration>", "Stop the command after this time")
    .option("-m, --message <reason>", "Reason to store with the job")
    .option("--detach", "Print the name of the job, and do not wait");
  addNotes(
    run,
    "The command runs once; it is not run again if it fails, or if its node is lost. The node it runs on is printed " +
      "to standard error. Ctrl-C stops it.",
    "Exit codes: the command's own; 128 plus the number of the signal that ended it; 75 if neither is known: no " +
      "node fits, it could not be started, its node is lost, or the control plane does not answer. Also 75 if the " +
      "command was stopped from outside and then exited with 0, if it succeeded but its output could not be read or " +
      "written in full, and if --detach could not print the name.",
  );
  run.action(
    action(
      shell,
      loaded<RunOptions>(async () => (await import("../jobs/run-command.ts")).runCommand),
    ),
  );
}
