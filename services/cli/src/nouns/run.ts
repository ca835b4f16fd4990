import type { Command } from "commander";
import { action, addNotes, loaded } from "../command.ts";
import type { RunOptions } from "../jobs/run-command.ts";
import type { Shell } from "../shell.ts";

/** Define `run`. */
export function defineRun(run: Command, shell: Shell): void {
  run
    .argument("[command...]", "Program and arguments, after --")
    .option("--name <name>", "Name of the job (default: the program's, and a random number)")
    .option("--selector <selector>", "Only on nodes whose labels match, in the syntax of Kubernetes")
    .option("--node <node>", "Only on this node, by its exact id")
    .option("--cores <number>", "Processors to reserve, for example 0.5")
    .option("--memory <bytes>", "Memory to reserve, for example 512Mi; more is not granted where it can be limited")
    .option("--disk <bytes>", "Disk to reserve, for example 2Gi")
    .option("--gpus <count>", "GPUs for this command alone")
    .option("--gpu-model <text>", "A part of the model of each GPU, for example h100")
    .option("-e, --env <name=value...>", "Variables of its environment")
    .option("--directory <path>", "Working directory, one that the agent allows")
    .option("--user <user>", "User that it runs as, one that the agent allows")
    .option("--image <image>", "Run it in a container of this image")
    .option("--queue-timeout <duration>", "Wait so long for a node (default: a node has to fit at once)")
    .option("--max-run-time <duration>", "End it after so long")
    .option("-m, --message <reason>", "Reason, for people; stored with the job")
    .option("--detach", "Print the name of the job, and do not wait");
  addNotes(
    run,
    `Examples:
  rollcall run -- uname -a
  rollcall run --cores 2 --memory 4Gi --selector zone=a -- make -j2`,
    "The command runs once; it is not run again when it fails, or when its node is lost. Where it runs goes to " +
      "standard error. Ctrl-C stops it.",
    "Exit codes: the command's own; 128 and the number of the signal that ended it; 75 where neither is known: no " +
      "node fits, it could not be started, its node is lost, or the control plane does not answer. 75 also where the " +
      "command was ended from outside and then exited with 0, where it succeeded and its output could not be read or " +
      "written in full, and where --detach could not print the name.",
  );
  run.action(
    action(
      shell,
      loaded<RunOptions>(async () => (await import("../jobs/run-command.ts")).runCommand),
    ),
  );
}
