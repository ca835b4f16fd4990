import { type NodeOutcome, NodeOutcomeSchema } from "@rollcall/api/rollcall/admin/v1/admin_pb";
import { ErrorReason } from "@rollcall/api/rollcall/node/v1/error_reason_pb";
import type { Node } from "@rollcall/api/rollcall/node/v1/node_pb";
import { stateWords } from "@rollcall/domain";
import { isAlreadyDone } from "../../client/already-done.ts";
import { Failure, UsageError } from "../../failure.ts";
import { refusalHint } from "../../hints.ts";
import { toPlain, writePlain } from "../../output/format.ts";
import { showing } from "../../output/progress.ts";
import { columnsOf } from "../../output/style.ts";
import { type Column, TablePrinter } from "../../output/table.ts";
import { counted, printable } from "../../output/text.ts";
import type { Shell } from "../../shell.ts";
import { MOST_NAMES, type Selector } from "../selection.ts";
import { membershipWord, statusWord } from "../words.ts";

/** The request to a verb's method for many nodes. */
export interface ManyCommand {
  readonly selector: Selector;
  readonly validateOnly: boolean;
  readonly pageToken: string;
  readonly requestId: string;
}

/** A page of outcomes. */
export interface ManyAnswer {
  readonly outcomes: readonly NodeOutcome[];
  readonly nextPageToken: string;
}

/** A verb to apply to many nodes. */
export interface ManyWork {
  /** As shown to the user, for example "approve". */
  readonly verb: string;
  readonly selector: Selector;
  readonly requestId: string;
  /** Whether to skip the confirmation. */
  readonly yes: boolean;
  /** Whether to show what would be done, without doing it. */
  readonly dryRun: boolean;
  /** Whether a node with nothing to change counts as refused. */
  readonly strict: boolean;
  readonly format: "table" | "name" | "json" | "yaml";
  /** Whether a node is already in the requested state. Null if the API itself refuses nodes in that state. */
  readonly isAlready: ((node: Node) => boolean) | null;
  call(command: ManyCommand): Promise<ManyAnswer>;
}

/**
 * Change many nodes and report each outcome. A user at a terminal first sees the list of nodes and confirms it; only
 * nodes of that list are then changed. Throws UsageError when there is no terminal to ask on, and Failure when a node
 * was refused.
 */
export async function changeMany(shell: Shell, work: ManyWork): Promise<void> {
  const isAsked = !work.yes || work.dryRun;
  if (!isAsked && work.isAlready === null) return doAndReport(shell, work, { names: null, left: [] });
  const preview: NodeOutcome[] = [];
  await readAll(shell, work, { validateOnly: true, selector: work.selector }, preview);
  const already = alreadyAmong(work, preview);
  const isOpen = preview.some((outcome) => outcome.result.case === "node" && !already.has(outcome));
  // Report without a confirmation, because nothing would change.
  if (work.dryRun || !isOpen) return report(shell, work, preview, already);
  // A single node that the user named, even with filters, needs no confirmation. A single node that a filter found
  // needs a confirmation.
  const isNamed = work.selector.nodes.length === 1;
  if (isAsked && !isNamed && !(await isWanted(shell, work, preview, already))) throw new Failure("nothing was changed");
  const isLeft = (outcome: NodeOutcome) => isNoNode(outcome) || already.has(outcome);
  const names = preview.filter((outcome) => !isLeft(outcome)).map(({ nodeId }) => nodeId);
  return doAndReport(shell, work, { names, left: preview.filter(isLeft), already });
}

/** The outcomes of nodes that are already in the requested state. */
function alreadyAmong({ isAlready }: ManyWork, preview: readonly NodeOutcome[]): ReadonlySet<NodeOutcome> {
  if (isAlready === null) return NONE;
  return new Set(preview.filter(({ result }) => result.case === "node" && isAlready(result.value)));
}

const NONE: ReadonlySet<NodeOutcome> = new Set();

/**
 * The nodes to change, or null for all selected nodes; the outcomes of the other nodes; and the result of
 * alreadyAmong().
 */
interface Chosen {
  readonly names: readonly string[] | null;
  readonly left: readonly NodeOutcome[];
  readonly already?: ReadonlySet<NodeOutcome>;
}

/**
 * Change the nodes with these names, or all selected nodes. If that fails midway, reports the outcomes so far before it
 * throws.
 */
async function doAndReport(shell: Shell, work: ManyWork, { names, left, already = NONE }: Chosen): Promise<void> {
  const done: NodeOutcome[] = [];
  try {
    if (names !== null) await doListed(shell, work, names, done);
    else await readAll(shell, work, { selector: work.selector, validateOnly: false }, done);
  } catch (error) {
    if (done.length === 0) throw error;
    await print(shell, work, [...left, ...done], already);
    shell.err.write(`stopped after ${counted(done.length, "node")}; run the command again for the rest\n`);
    throw error;
  }
  return report(shell, work, [...left, ...done], already);
}

/** Change the listed nodes that still match the selector. */
async function doListed(shell: Shell, work: ManyWork, ids: readonly string[], done: NodeOutcome[]): Promise<void> {
  for (let start = 0; start < ids.length; start += MOST_NAMES) {
    const nodes = ids.slice(start, start + MOST_NAMES);
    const selector = { ...work.selector, nodes, all: false };
    // Give each part its own key, because each part is a separate request.
    const part = start === 0 || work.requestId === "" ? "" : `/${start}`;
    const named = { ...work, requestId: `${work.requestId}${part}` };
    await readAll(shell, named, { selector, validateOnly: false }, done);
  }
}

/** Append the outcomes of all pages to `outcomes`, and show the growing count as progress. */
async function readAll(
  shell: Shell,
  work: ManyWork,
  asked: Pick<ManyCommand, "selector" | "validateOnly">,
  outcomes: NodeOutcome[],
): Promise<void> {
  const what = asked.validateOnly ? `find the nodes to ${work.verb}` : `${work.verb} nodes`;
  await showing(shell, what, async (shown) => {
    let pageToken = "";
    do {
      const answer = await work.call({ ...asked, pageToken, requestId: work.requestId });
      outcomes.push(...answer.outcomes);
      pageToken = answer.nextPageToken;
      shown?.update(`${what}, ${outcomes.length} so far`);
    } while (pageToken !== "");
  });
}

async function isWanted(
  shell: Shell,
  work: ManyWork,
  preview: readonly NodeOutcome[],
  already: ReadonlySet<NodeOutcome>,
): Promise<boolean> {
  const count = preview.filter((outcome) => outcome.result.case === "node" && !already.has(outcome)).length;
  const question = `${work.verb} ${counted(count, "node")}?`;
  if (shell.ask === null) {
    throw new UsageError(
      `cannot ask whether to ${question.slice(0, -1)} without a terminal: use --yes to confirm, or --dry-run to see ` +
        "the nodes",
    );
  }
  shell.err.write(tableOf(shell, work, preview, already, LISTED_COLUMNS));
  const answer = await shell.ask(`${question} [y/N] `);
  return /^y(es)?$/i.test(answer.trim());
}

async function report(
  shell: Shell,
  work: ManyWork,
  outcomes: readonly NodeOutcome[],
  already: ReadonlySet<NodeOutcome>,
): Promise<void> {
  await print(shell, work, outcomes, already);
  const failed = outcomes.filter((outcome) => isRefused(work, outcome, already)).length;
  if (failed === 0) return;
  const text = `failed to ${work.verb} ${failed} of ${counted(outcomes.length, "node")}`;
  throw new Failure([text, ...hintsFor(work, outcomes)].join("\n"));
}

/** One hint for each reason, with the first node that was refused for that reason. */
function hintsFor(work: ManyWork, outcomes: readonly NodeOutcome[]): readonly string[] {
  const hints = new Map<ErrorReason, string>();
  for (const outcome of outcomes) {
    const { result } = outcome;
    if (result.case !== "refusal" || hints.has(result.value.reason) || !isRefused(work, outcome, NONE)) continue;
    const { reason, metadata } = result.value;
    const hint = refusalHint(reason, metadata);
    if (hint !== null) hints.set(reason, `hint: ${printable(hint)}`);
  }
  return [...hints.values()];
}

async function print(
  shell: Shell,
  work: ManyWork,
  outcomes: readonly NodeOutcome[],
  already: ReadonlySet<NodeOutcome>,
): Promise<void> {
  if (outcomes.length === 0) shell.err.write("no nodes match\n");
  if (work.format === "json" || work.format === "yaml") {
    const plain = outcomes.map((outcome) => toPlain(NodeOutcomeSchema, outcome));
    await writePlain(shell, work.format, { outcomes: plain });
  } else if (work.format === "name") {
    const done = outcomes.filter((outcome) => !isRefused(work, outcome, already));
    shell.out.write(done.map(({ nodeId }) => `${printable(nodeId)}\n`).join(""));
    // Report the refused nodes on standard error, because standard output has only names.
    for (const outcome of outcomes) {
      const { nodeId, result } = outcome;
      if (!isRefused(work, outcome, already)) continue;
      const why = result.case === "refusal" ? result.value.message : NOTHING;
      shell.err.write(`${printable(nodeId)}: ${printable(why)}\n`);
    }
  } else if (outcomes.length > 0) {
    shell.out.write(tableOf(shell, work, outcomes, already, work.dryRun ? LISTED_COLUMNS : DONE_COLUMNS));
  }
}

/** Whether a node was refused. With `strict`, a node with nothing to change counts as refused. */
function isRefused({ strict }: ManyWork, outcome: NodeOutcome, already: ReadonlySet<NodeOutcome>): boolean {
  const { result } = outcome;
  if (already.has(outcome)) return strict;
  if (result.case === "refusal") return strict || !isAlreadyDone(result.value.reason);
  return result.case !== "node";
}

/** Whether the outcome is for a name that matches no node. */
function isNoNode({ result }: NodeOutcome): boolean {
  return result.case === "refusal" && result.value.reason === ErrorReason.NODE_NOT_FOUND;
}

/** An outcome, whether the node was refused, and whether there was nothing to change. */
interface Row {
  readonly outcome: NodeOutcome;
  readonly refused: boolean;
  readonly already: boolean;
}

/** The outcome of a node that was already in the requested state. */
const NOTHING = "nothing to change";

const NODE_COLUMN: Column<Row> = {
  title: "NODE",
  name: "node",
  cell: ({ outcome }) => ({ text: outcome.nodeId }),
};

const OUTCOME_COLUMN: Column<Row> = {
  title: "OUTCOME",
  name: "outcome",
  cell: ({ outcome: { result }, refused, already }) => {
    if (already) return { text: NOTHING, style: refused ? "bad" : "plain" };
    if (result.case === "node") return { text: "Ok", style: "good" };
    return { text: result.value?.message ?? "unknown", style: refused ? "bad" : "plain" };
  },
};

const DONE_COLUMNS = [NODE_COLUMN, OUTCOME_COLUMN];

/** The nodes before anything is changed. */
const LISTED_COLUMNS: readonly Column<Row>[] = [
  NODE_COLUMN,
  {
    title: "APPROVAL",
    name: "approval",
    rank: 2,
    cell: ({ outcome: { result } }) => ({
      text: result.case === "node" ? stateWords(membershipWord(result.value.membership?.state)) : "-",
    }),
  },
  {
    title: "STATUS",
    name: "status",
    rank: 1,
    cell: ({ outcome: { result } }) => ({ text: result.case === "node" ? stateWords(statusWord(result.value)) : "-" }),
  },
  OUTCOME_COLUMN,
];

function tableOf(
  shell: Shell,
  work: ManyWork,
  outcomes: readonly NodeOutcome[],
  already: ReadonlySet<NodeOutcome>,
  columns: readonly Column<Row>[],
) {
  const rows = outcomes.map((outcome) => {
    return { outcome, refused: isRefused(work, outcome, already), already: already.has(outcome) };
  });
  return new TablePrinter(columns, { columns: columnsOf(shell) }).print(rows);
}
