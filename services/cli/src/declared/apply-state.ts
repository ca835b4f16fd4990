import {
  ApplyStateResponseSchema,
  DeclaredStateService,
  PlanStateResponseSchema,
  StateAction,
  type StateChange,
} from "@rollcall/api/rollcall/admin/v1/declared_state_pb";
import { reachControlPlane } from "../client/control-plane.ts";
import { Exit, Failure, UsageError } from "../failure.ts";
import { withFailureCode } from "../failure-code.ts";
import type { Invocation, Verb } from "../invocation.ts";
import { ANSWER_FORMATS, outputFormat, writeAnswer } from "../output/format.ts";
import { printable } from "../output/text.ts";
import type { Shell } from "../shell.ts";
import { readStateFiles } from "./read-files.ts";

/** The options of `diff`. */
export interface DiffOptions {
  readonly file: readonly string[];
  readonly owner?: string;
  readonly prune?: boolean;
  readonly takeOver?: boolean;
}

/** The options of `apply`. */
export interface ApplyOptions extends DiffOptions {
  readonly dryRun?: boolean;
  readonly yes?: boolean;
  readonly message?: string;
  readonly requestId?: string;
}

/** The exit code of a `diff` that failed. 1 means that something differs, and 2 is wrong usage. */
const DIFF_FAILED = 3;

/** `diff -f FILE...`: show what `apply` would change, field by field. */
export const diffState: Verb<DiffOptions> = withFailureCode(DIFF_FAILED, async (invocation) => {
  const { shell, options } = invocation;
  const format = outputFormat(options, ANSWER_FORMATS);
  const { control, client, request } = await reach(invocation);
  const answer = await control.attempt("admin", "compare declared state", () => client.planState(request));
  const changed = answer.changes.filter(isChange);
  warn(shell, changed);
  const lines = changed.flatMap((change) => [lineOf(change), ...differenceLines(change)]);
  await writeAnswer(shell, format, [PlanStateResponseSchema, answer], lines.map((line) => `${line}\n`).join(""));
  if (answer.more) shell.err.write(MORE);
  if (changed.length > 0) throw new Exit(1, summaryOf(answer.changes, "would be"));
});

/** `apply -f FILE...`: create, change and prune objects as the files declare. */
export const applyState: Verb<ApplyOptions> = async (invocation) => {
  const { shell, options } = invocation;
  const format = outputFormat(options, ANSWER_FORMATS);
  const { control, client, request } = await reach(invocation);
  if (options.dryRun === true) {
    const plan = await control.attempt("admin", "plan declared state", () => client.planState(request));
    const lines = plan.changes.map((change) => `${lineOf(change)}\n`).join("");
    const text = `${lines}${summaryOf(plan.changes, "would be")}\n`;
    await writeAnswer(shell, format, [PlanStateResponseSchema, plan], text);
    warn(shell, plan.changes);
    if (plan.more) shell.err.write(MORE);
    const refused = plan.changes.filter(({ action }) => action === StateAction.CONFLICT);
    if (refused.length > 0) throw new Failure(`these objects would be refused: ${refused.map(lineOf).join("; ")}`);
    return;
  }
  let confirmed: { objects: string[] } | undefined;
  if (request.prune && options.yes !== true) {
    const plan = await control.attempt("admin", "plan declared state", () => client.planState(request));
    confirmed = { objects: [...(await confirmPruning(invocation, plan.changes))] };
  }
  const { message: reason = "", requestId = "" } = options;
  const answer = await control.attempt("admin", "apply declared state", () =>
    client.applyState({ ...request, reason, requestId, ...(confirmed && { confirmed }) }),
  );
  const secrets = answer.secrets.map(({ webhook, secret }) => `webhook/${webhook} secret ${secret}\n`).join("");
  const text = `${answer.changes.map((change) => `${lineOf(change)}\n`).join("")}${secrets}`;
  await writeAnswer(shell, format, [ApplyStateResponseSchema, answer], text);
  warn(shell, answer.changes);
  if (answer.more) shell.err.write(MORE);
  if (format !== "table") return;
  shell.err.write(`${summaryOf(answer.changes, "are")}\n`);
  if (secrets !== "")
    shell.err.write("Receivers verify webhook signatures with these secrets. They are not shown again.\n");
};

function warn({ err }: Pick<Shell, "err">, changes: readonly StateChange[]): void {
  for (const { object, warnings } of changes) {
    for (const warning of warnings) err.write(`warning: ${printable(`${object}: ${warning}`)}\n`);
  }
}

const MORE = "One call could not prune all objects: apply the same files again to prune the rest.\n";

async function reach({ shell, options }: Invocation<DiffOptions>) {
  const files = await readStateFiles(shell, options.file);
  const owner = options.owner ?? files.owner;
  const { prune = false, takeOver = false } = options;
  if (prune && owner === "")
    throw new UsageError("--prune requires an owner, whose objects it removes: pass --owner, or name one in the files");
  if (takeOver && owner === "")
    throw new UsageError(
      "--take-over requires an owner, which takes over the objects: pass --owner, or name one in the files",
    );
  const control = reachControlPlane(shell, options);
  const client = control.client("admin", DeclaredStateService);
  return { control, client, request: { objects: [...files.objects], owner, prune, takeOver } };
}

/**
 * Ask the user whether to prune objects. Returns the objects that were shown. Throws Failure when the user declines.
 */
async function confirmPruning(
  { shell }: Invocation<ApplyOptions>,
  changes: readonly StateChange[],
): Promise<readonly string[]> {
  const pruned = changes.filter(({ action }) => action === StateAction.PRUNE).map(({ object }) => object);
  if (pruned.length === 0) return [];
  if (shell.ask === null) {
    throw new UsageError(
      `cannot ask whether to remove ${pruned.join(", ")} without a terminal: use --yes to confirm, or --dry-run to ` +
        "preview",
    );
  }
  for (const object of pruned) shell.err.write(`${printable(object)}\n`);
  const answer = await shell.ask(
    `Remove ${pruned.length === 1 ? "this object" : `these ${pruned.length} objects`}? [y/N] `,
  );
  if (!/^y(es)?$/i.test(answer.trim())) throw new Failure("nothing was changed");
  return pruned;
}

const WORDS: Readonly<Record<number, string>> = {
  [StateAction.UNSPECIFIED]: "unknown",
  [StateAction.UNCHANGED]: "unchanged",
  [StateAction.CREATE]: "created",
  [StateAction.START]: "started again",
  [StateAction.UPDATE]: "updated",
  [StateAction.ADOPT]: "adopted",
  [StateAction.PRUNE]: "pruned",
  [StateAction.FORGET]: "forgotten",
  [StateAction.CONFLICT]: "refused",
};

function isChange({ action }: StateChange): boolean {
  return action !== StateAction.UNCHANGED;
}

function lineOf({ object, action, formerOwner }: StateChange): string {
  const owner = action === StateAction.CONFLICT ? `: it belongs to ${formerOwner}` : "";
  return printable(`${object} ${WORDS[action] ?? "unknown"}${owner}`);
}

function differenceLines({ differences }: StateChange): readonly string[] {
  return differences.map(({ field, before, after, edited }) => {
    const change = `${before === "" ? "not set" : before} -> ${after === "" ? "not set" : after}`;
    return printable(`  ${field}: ${change}${edited ? " (edited since it was applied)" : ""}`);
  });
}

/** "3 objects would be created, 1 would be pruned, 4 unchanged", in the order of the actions. */
function summaryOf(changes: readonly StateChange[], verb: "are" | "would be"): string {
  const counts = new Map<StateAction, number>();
  for (const { action } of changes) counts.set(action, (counts.get(action) ?? 0) + 1);
  const parts = [...counts]
    .sort(([left], [right]) => left - right)
    .map(([action, count]) => `${count} ${action === StateAction.UNCHANGED ? "" : `${verb} `}${WORDS[action]}`);
  return parts.length === 0 ? "No objects" : parts.join(", ");
}
