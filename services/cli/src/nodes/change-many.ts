import { type NodeOutcome, NodeOutcomeSchema } from "@rollcall/api/rollcall/admin/v1/admin_pb";
import { ErrorReason } from "@rollcall/api/rollcall/node/v1/error_reason_pb";
import type { Node } from "@rollcall/api/rollcall/node/v1/node_pb";
import { isAlreadyDone } from "../client/already-done.ts";
import { Failure, UsageError } from "../failure.ts";
import { refusalHint } from "../hints.ts";
import { toPlain, writePlain } from "../output/format.ts";
import { columnsOf } from "../output/style.ts";
import { type Column, TablePrinter } from "../output/table.ts";
import { printable } from "../output/text.ts";
import type { Shell } from "../shell.ts";
import { MOST_NAMES, type Selector } from "./selection.ts";
import { membershipWord, statusWord } from "./words.ts";

/** What a verb's method is asked to do to many nodes. */
export interface ManyCommand {
  readonly selector: Selector;
  readonly validateOnly: boolean;
  readonly pageToken: string;
  readonly requestId: string;
}

/** A page of their outcomes. */
export interface ManyAnswer {
  readonly outcomes: readonly NodeOutcome[];
  readonly nextPageToken: string;
}

/** One verb, to be done to many nodes. */
export interface ManyWork {
  /** The verb as people say it, for example "approve". */
  readonly verb: string;
  readonly selector: Selector;
  readonly requestId: string;
  /** Whether to go ahead without a question. */
  readonly yes: boolean;
  /** Whether to say what would be done, and do nothing. */
  readonly dryRun: boolean;
  /** Whether a node without anything to change counts as refused. */
  readonly strict: boolean;
  readonly format: "table" | "name" | "json" | "yaml";
  /** Whether a node is as the verb would make it, where the API does not refuse that; null where it does. */
  readonly isAlready: ((node: Node) => boolean) | null;
  call(command: ManyCommand): Promise<ManyAnswer>;
}

/**
 * Do something to many nodes and report each one's outcome. A user at a terminal sees the list and is asked first; what
 * is done then is done to the nodes of that list and to no others. Throws UsageError when there is no terminal to ask
 * on, Failure when a node was refused.
 */
export async function changeMany(shell: Shell, work: ManyWork): Promise<void> {
  const isAsked = !work.yes || work.dryRun;
  if (!isAsked && work.isAlready === null) return doAndReport(shell, work, { names: null, left: [] });
  const preview: NodeOutcome[] = [];
  await readAll(shell, work, { validateOnly: true, selector: work.selector }, preview);
  const already = alreadyAmong(work, preview);
  const isOpen = preview.some((outcome) => outcome.result.case === "node" && !already.has(outcome));
  // Nothing would change, so there is nothing to ask about.
  if (work.dryRun || !isOpen) return report(shell, work, preview, already);
  // One node that is named and filtered needs no question; one that a filter found does, like many.
  const isNamed = work.selector.nodes.length === 1;
  if (isAsked && !isNamed && !(await isWanted(shell, work, preview, already))) throw new Failure("nothing was done");
  const isLeft = (outcome: NodeOutcome) => isNoNode(outcome) || already.has(outcome);
  const names = preview.filter((outcome) => !isLeft(outcome)).map(({ nodeId }) => nodeId);
  return doAndReport(shell, work, { names, left: preview.filter(isLeft), already });
}

/** The outcomes of nodes that are as the verb would make them. */
function alreadyAmong({ isAlready }: ManyWork, preview: readonly NodeOutcome[]): ReadonlySet<NodeOutcome> {
  if (isAlready === null) return NONE;
  return new Set(preview.filter(({ result }) => result.case === "node" && isAlready(result.value)));
}

const NONE: ReadonlySet<NodeOutcome> = new Set();

/** Which nodes to do it to, null for all that are chosen; the outcomes of the others; and what alreadyAmong() found. */
interface Chosen {
  readonly names: readonly string[] | null;
  readonly left: readonly NodeOutcome[];
  readonly already?: ReadonlySet<NodeOutcome>;
}

/**
 * Do it to the nodes of these names, or to all that are chosen. When it breaks off, the outcomes until then are
 * reported first.
 */
async function doAndReport(shell: Shell, work: ManyWork, { names, left, already = NONE }: Chosen): Promise<void> {
  const done: NodeOutcome[] = [];
  try {
    if (names !== null) await doListed(shell, work, names, done);
    else await readAll(shell, work, { selector: work.selector, validateOnly: false }, done);
  } catch (error) {
    if (done.length === 0) throw error;
    await print(shell, work, [...left, ...done], already);
    shell.err.write(`stopped after ${countOf(done.length)}; run it again for the rest\n`);
    throw error;
  }
  return report(shell, work, [...left, ...done], already);
}

/** Do it to the nodes of a list, as far as they still match. */
async function doListed(shell: Shell, work: ManyWork, ids: readonly string[], done: NodeOutcome[]): Promise<void> {
  for (let start = 0; start < ids.length; start += MOST_NAMES) {
    const nodes = ids.slice(start, start + MOST_NAMES);
    const selector = { ...work.selector, nodes, all: false };
    // Each part is a request of its own.
    const part = start === 0 || work.requestId === "" ? "" : `/${start}`;
    const named = { ...work, requestId: `${work.requestId}${part}` };
    await readAll(shell, named, { selector, validateOnly: false }, done);
  }
}

/** Add the outcomes of all pages to `outcomes`; a terminal shows their number grow. */
async function readAll(
  shell: Shell,
  work: ManyWork,
  asked: Pick<ManyCommand, "selector" | "validateOnly">,
  outcomes: NodeOutcome[],
): Promise<void> {
  let pageToken = "";
  const showCount = (text: string) => {
    if (shell.err.isTerminal) shell.err.write(`\r\u001b[K${text}`);
  };
  do {
    const answer = await work
      .call({ ...asked, pageToken, requestId: work.requestId })
      .finally(() => pageToken !== "" && showCount(""));
    outcomes.push(...answer.outcomes);
    pageToken = answer.nextPageToken;
    if (pageToken !== "") showCount(`${countOf(outcomes.length)} ...`);
  } while (pageToken !== "");
}

async function isWanted(
  shell: Shell,
  work: ManyWork,
  preview: readonly NodeOutcome[],
  already: ReadonlySet<NodeOutcome>,
): Promise<boolean> {
  const count = preview.filter((outcome) => outcome.result.case === "node" && !already.has(outcome)).length;
  const question = `${work.verb} ${countOf(count)}?`;
  if (shell.ask === null) {
    throw new UsageError(
      `${question} There is no terminal to ask on: use --yes to do it, or --dry-run to see the nodes`,
    );
  }
  shell.err.write(tableOf(shell, work, preview, already, LISTED_COLUMNS));
  const answer = await shell.ask(`${question} [y/N] `);
  return /^y(es)?$/i.test(answer.trim());
}

function countOf(count: number): string {
  return count === 1 ? "1 node" : `${count} nodes`;
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
  const text = `failed to ${work.verb} ${failed} of ${countOf(outcomes.length)}`;
  throw new Failure([text, ...hintsFor(work, outcomes)].join("\n"));
}

/** One hint for each reason of a refusal, with the first node that was refused for it. */
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
  if (outcomes.length === 0) shell.err.write("no node matches\n");
  if (work.format === "json" || work.format === "yaml") {
    const plain = outcomes.map((outcome) => toPlain(NodeOutcomeSchema, outcome));
    await writePlain(shell, work.format, { outcomes: plain });
  } else if (work.format === "name") {
    const done = outcomes.filter((outcome) => !isRefused(work, outcome, already));
    shell.out.write(done.map(({ nodeId }) => `${printable(nodeId)}\n`).join(""));
  } else if (outcomes.length > 0) {
    shell.out.write(tableOf(shell, work, outcomes, already, work.dryRun ? LISTED_COLUMNS : DONE_COLUMNS));
  }
}

/** Whether a node was refused; one without anything to change was not. */
function isRefused({ strict }: ManyWork, outcome: NodeOutcome, already: ReadonlySet<NodeOutcome>): boolean {
  const { result } = outcome;
  if (already.has(outcome)) return strict;
  if (result.case === "refusal") return strict || !isAlreadyDone(result.value.reason);
  return result.case !== "node";
}

/** Whether an outcome is of a name that no node has. */
function isNoNode({ result }: NodeOutcome): boolean {
  return result.case === "refusal" && result.value.reason === ErrorReason.NODE_NOT_FOUND;
}

/** An outcome, whether the node was refused, and whether there was nothing to change. */
interface Row {
  readonly outcome: NodeOutcome;
  readonly refused: boolean;
  readonly already: boolean;
}

const NODE_COLUMN: Column<Row> = {
  title: "NODE",
  name: "node",
  cell: ({ outcome }) => ({ text: outcome.nodeId }),
};

const OUTCOME_COLUMN: Column<Row> = {
  title: "OUTCOME",
  name: "outcome",
  cell: ({ outcome: { result }, refused, already }) => {
    if (already) return { text: "nothing to change", style: refused ? "bad" : "plain" };
    if (result.case === "node") return { text: "Ok", style: "good" };
    return { text: result.value?.message ?? "unknown", style: refused ? "bad" : "plain" };
  },
};

const DONE_COLUMNS = [NODE_COLUMN, OUTCOME_COLUMN];

/** The nodes as they are, before anything is done. */
const LISTED_COLUMNS: readonly Column<Row>[] = [
  NODE_COLUMN,
  {
    title: "APPROVAL",
    name: "approval",
    rank: 2,
    cell: ({ outcome: { result } }) => ({
      text: result.case === "node" ? membershipWord(result.value.membership?.state) : "-",
    }),
  },
  {
    title: "STATUS",
    name: "status",
    rank: 1,
    cell: ({ outcome: { result } }) => ({ text: result.case === "node" ? statusWord(result.value) : "-" }),
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
