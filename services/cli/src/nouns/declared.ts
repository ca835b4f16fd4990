import { type Command, Option } from "commander";
import { DECLARED_KIND_WORDS } from "../choices.ts";
import { action, addChangeOptions, addNotes, loaded } from "../command.ts";
import type { ApplyOptions, DiffOptions } from "../declared/apply-state.ts";
import type { ExportOptions } from "../declared/export-state.ts";
import type { Shell } from "../shell.ts";

const FILES =
  "A file holds one object or several, as documents or as a list: kind (HealthPolicy, NodeLabels, Webhook or Job), " +
  "name and spec, and optionally the owner of all. - is standard input; of a directory its .yaml, .yml and .json " +
  "files are read.";

/** Define `apply`. */
export function defineApply(apply: Command, shell: Shell): void {
  addStateOptions(apply)
    .option("--take-over", "Take objects over that other owners applied, instead of refusing them")
    .option("--dry-run", "Tell what would be done, and do nothing")
    .option("-y, --yes", "Prune without asking");
  addChangeOptions(apply);
  addNotes(
    apply,
    FILES,
    "All objects are applied, or none. The secret of a webhook that is made goes to standard output, once. " +
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
  addStateOptions(diff).addOption(new Option("--take-over", "Tell what apply --take-over would do"));
  addNotes(
    diff,
    FILES,
    "Exits with 0 when nothing would change, with 1 when something would, with 2 when it is used wrongly and with 3 " +
      "when it failed. -o json|yaml prints a " +
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
    .option("--owner <name>", "Only what this owner applied")
    .option("--kinds <kinds>", `Only these kinds, with commas: ${DECLARED_KIND_WORDS.join(",")}`);
  addNotes(
    command,
    "What is written is what apply reads: to apply it changes nothing. Without --owner jobs that have ended are left " +
      "out. Signing secrets of webhooks, tokens and bans are never written; URLs of webhooks and the env of jobs are.",
    "Webhooks take the role admin; leave them out with --kinds. --owner takes the roles that apply takes. -o json " +
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
    .option("--owner <name>", "In whose name (default: the owner that the files name, else none)")
    .option("--prune", "Remove what the owner applied before and the files do not have any more: give all its files");
}
