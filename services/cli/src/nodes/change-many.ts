import { type NodeOutcome, NodeOutcomeSchema } from "@rollcall/api/rollcall/admin/v1/admin_pb";
import { ErrorReason } from "@rollcall/api/rollcall/node/v1/error_reason_pb";
import { Failure, UsageError } from "../failure.ts";
import { paintNothing } from "../output/style.ts";
import { type Column, TablePrinter } from "../output/table.ts";
import type { Shell } from "../shell.ts";
import { MOST_NAMES, type Selector } from "./choose-nodes.ts";
import { membershipWord, statusWord } from "./words.ts";

/** What a verb is asked of many nodes. */
export interface ManyCommand {
  readonly selector: Selector;
  readonly validateOnly: boolean;
  readonly pageToken: string;
  readonly requestId: string;
}

/** A page of what became of them. */
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
  /** Whether nobody is asked first. */
  readonly yes: boolean;
  /** Whether nothing is to be done but to say what would be. */
  readonly dryRun: boolean;
  readonly format: "table" | "json" | "yaml";
  call(command: ManyCommand): Promise<ManyAnswer>;
}

/**
 * Do something to many nodes and report each one's outcome. Somebody at a terminal sees the list and is asked first,
 * unless it is one node only; what is done then is done to the nodes of that list and to no others. Throws UsageError
 * when nobody is there to be asked, Failure when a node was refused.
 */
export async function changeMany(shell: Shell, work: ManyWork): Promise<void> {
  if (work.yes && !work.dryRun) return doAndReport(shell, work, { names: null, refused: [] });
  const preview: NodeOutcome[] = [];
  await readAll(shell, work, { validateOnly: true, selector: work.selector }, preview);
  if (work.dryRun) return report(shell, work, preview);
  const existing = preview.filter((outcome) => !isNoNode(outcome));
  if (existing.length === 0) return report(shell, work, preview);
  if (preview.length > 1 && !(await isWanted(shell, work, preview))) {
    throw new Failure("nothing was done");
  }
  const names = existing.map(({ nodeId }) => nodeId);
  return doAndReport(shell, work, { names, refused: preview.filter(isNoNode) });
}

/**
 * Do it to the nodes of these names, or to all that are chosen. When it breaks off, what became of the nodes until then
 * is reported first.
 */
async function doAndReport(
  shell: Shell,
  work: ManyWork,
  { names, refused }: { names: readonly string[] | null; refused: readonly NodeOutcome[] },
): Promise<void> {
  const done: NodeOutcome[] = [];
  try {
    if (names !== null) await doListed(shell, work, names, done);
    else await readAll(shell, work, { selector: work.selector, validateOnly: false }, done);
  } catch (error) {
    if (done.length === 0) throw error;
    await print(shell, work, [...refused, ...done]);
    shell.err.write(`broken off after ${countOf(done.length)}; run it again for the rest\n`);
    throw error;
  }
  return report(shell, work, [...refused, ...done]);
}

/** Do it to the nodes of a list, as far as they are still what was asked for. */
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

/** Add the outcomes of all pages to `outcomes`; somebody at a terminal sees their number grow. */
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

async function isWanted(shell: Shell, work: ManyWork, preview: readonly NodeOutcome[]): Promise<boolean> {
  const count = preview.filter(({ result }) => result.case === "node").length;
  const question = `${work.verb} ${countOf(count)}?`;
  if (shell.ask === null) {
    throw new UsageError(
      `${question} There is no terminal to ask on: say --yes to do it, or --dry-run to see the nodes`,
    );
  }
  shell.err.write(tableOf(preview, LISTED_COLUMNS));
  const answer = await shell.ask(`${question} [y/N] `);
  return /^y(es)?$/i.test(answer.trim());
}

function countOf(count: number): string {
  return count === 1 ? "1 node" : `${count} nodes`;
}

async function report(shell: Shell, work: ManyWork, outcomes: readonly NodeOutcome[]): Promise<void> {
  await print(shell, work, outcomes);
  const failed = outcomes.filter(({ result }) => result.case !== "node").length;
  if (failed === 0) return;
  throw new Failure(`failed to ${work.verb} ${failed} of ${outcomes.length} nodes`);
}

async function print(shell: Shell, work: ManyWork, outcomes: readonly NodeOutcome[]): Promise<void> {
  if (work.format === "table") {
    if (outcomes.length === 0) shell.err.write("no node matches\n");
    else shell.out.write(tableOf(outcomes, work.dryRun ? LISTED_COLUMNS : DONE_COLUMNS));
  } else {
    const { formatStructured, toPlain } = await import("../output/structured.ts");
    const plain = outcomes.map((outcome) => toPlain(NodeOutcomeSchema, outcome));
    shell.out.write(await formatStructured(work.format, { outcomes: plain }));
  }
}

/** Whether an outcome is of a name that means no node, or several. */
function isNoNode({ result }: NodeOutcome): boolean {
  if (result.case !== "refusal") return false;
  const { reason } = result.value;
  return reason === ErrorReason.NODE_NOT_FOUND || reason === ErrorReason.AMBIGUOUS_NODE;
}

const NODE_COLUMN: Column<NodeOutcome> = {
  title: "NODE",
  name: "node",
  cell: ({ nodeId }) => ({ text: nodeId }),
};

const OUTCOME_COLUMN: Column<NodeOutcome> = {
  title: "OUTCOME",
  name: "outcome",
  cell: ({ result }) =>
    result.case === "node"
      ? { text: "Ok", style: "good" }
      : { text: result.value?.message ?? "nothing is known", style: "bad" },
};

const DONE_COLUMNS = [NODE_COLUMN, OUTCOME_COLUMN];

/** The nodes as they are, before anything is done. */
const LISTED_COLUMNS: readonly Column<NodeOutcome>[] = [
  NODE_COLUMN,
  {
    title: "APPROVAL",
    name: "approval",
    cell: ({ result }) => ({
      text: result.case === "node" ? membershipWord(result.value.membership?.state) : "-",
    }),
  },
  {
    title: "STATUS",
    name: "status",
    cell: ({ result }) => ({ text: result.case === "node" ? statusWord(result.value) : "-" }),
  },
  OUTCOME_COLUMN,
];

function tableOf(outcomes: readonly NodeOutcome[], columns: readonly Column<NodeOutcome>[]): string {
  const look = { hideHeader: false, wide: true, paint: paintNothing };
  return new TablePrinter(columns, look).print(outcomes);
}
