import { type Command, Option } from "commander";
import { DECLARED_KIND_WORDS } from "../choices.ts";
import { action, addChangeOptions, addNotes, loaded } from "../command.ts";
import type { ApplyOptions, DiffOptions } from "../declared/apply-state.ts";
import type { ExportOptions } from "../declared/export-state.ts";
import type { Shell } from "../shell.ts";

const FILES =
  "A file contains one or more objects, as YAML documents or as a list. Each has a kind (HealthPolicy, NodeLabels, " +
  "Webhook or Job), " +
  "name and spec. The file can also name one owner for all of them. - is standard input; in a directory, all " +
  ".yaml, .yml and .json " +
  "files are read.";

/** Define `apply`. */
export function defineApply(apply: Command, shell: Shell): void {
  addStateOptions(apply)
    .option("--take-over", "Take over objects that other owners applied, instead of refusing them")
    .option("--dry-run", "Only show what would be done")
    .option("-y, --yes", "Prune without asking");
  addChangeOptions(apply);
  addNotes(
    apply,
    FILES,
    "All objects are applied, or none. The secret of a new webhook is printed to standard output, once. " +
      "-o json|yaml prints a rollcall.admin.v1.ApplyStateResponse, with --dry-run a PlanStateResponse.",
  );
  apply.action(
    action(
      shell,
      loaded<ApplyOptions>(async () => (await import("../declared/apply-state.ts")).applyState),
    ),
  );
}

/** Define `diff`. */
export function defineDiff(diff: Command, shell: Shell): void {
  addStateOptions(diff).addOption(new Option("--take-over", "Show what apply --take-over would do"));
  addNotes(
    diff,
    FILES,
    "Exits with 0 if nothing would change, with 1 if something would, with 2 for wrong usage and with 3 " +
      "on failure. -o json|yaml prints a " +
      "rollcall.admin.v1.PlanStateResponse.",
  );
  diff.action(
    action(
      shell,
      loaded<DiffOptions>(async () => (await import("../declared/apply-state.ts")).diffState),
    ),
  );
}

/** Define `export`. */
export function defineExport(command: Command, shell: Shell): void {
  command
    .option("--owner <name>", "Only objects that this owner applied")
    .option("--kinds <kinds>", `Only these kinds, separated by commas: ${DECLARED_KIND_WORDS.join(",")}`);
  addNotes(
    command,
    "The output is a file for apply: applying it changes nothing. Without --owner, jobs that have ended are left " +
      "out. Signing secrets, tokens and bans are never written; URLs of webhooks and the env of jobs are.",
    "Webhooks require the role admin; leave them out with --kinds. --owner requires the same roles as apply. -o json " +
      "prints one list.",
  );
  command.action(
    action(
      shell,
      loaded<ExportOptions>(async () => (await import("../declared/export-state.ts")).exportState),
    ),
  );
}

function addStateOptions(command: Command): Command {
  return command
    .requiredOption("-f, --file <file...>", "Files or directories of declared objects; - for standard input")
    .option("--owner <name>", "Owner of the objects (default: the owner that the files name, or none)")
    .option(
      "--prune",
      "Include the removal of objects that the owner applied earlier and that the files no longer declare; pass all " +
        "files of the owner",
    );
}
