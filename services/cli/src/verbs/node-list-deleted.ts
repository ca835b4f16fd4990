import { create } from "@bufbuild/protobuf";
import { timestampMs } from "@bufbuild/protobuf/wkt";
import {
  type DeletedNode,
  ListDeletedNodesResponseSchema,
  RegistryService,
} from "@rollcall/api/rollcall/registry/v1/registry_pb";
import { reachControlPlane } from "../client/control-plane.ts";
import { UsageError } from "../failure.ts";
import type { Verb } from "../invocation.ts";
import { parseRange, type SelectionOptions } from "../nodes/read-nodes.ts";
import { connectionWord, healthWord, membershipWord, typeWord } from "../nodes/words.ts";
import { choosePaint, outputFormat } from "../output/format.ts";
import { paintNothing } from "../output/style.ts";
import { type Column, csvHeader, csvRows, TablePrinter } from "../output/table.ts";

/** What `node list --deleted` takes. */
export interface NodeListDeletedOptions extends SelectionOptions {
  readonly deleted?: boolean;
  readonly limit?: string;
  readonly nextToken?: string;
  readonly wide?: boolean;
  readonly hideHeader?: boolean;
  /** False with --no-style. */
  readonly style: boolean;
}

const PAGE_SIZE = 200;

/** `node list --deleted`: what is left of removed nodes, the newest first. */
export const nodeListDeleted: Verb<NodeListDeletedOptions> = async ({ shell, options }) => {
  const format = outputFormat(options, ["table", "json", "yaml", "csv"]);
  const { labels, filterApproval, filterStatus, filterType } = options;
  if ([labels, filterApproval, filterStatus, filterType].some((it) => it !== undefined)) {
    throw new UsageError("--deleted takes no filters: what is gone matches none");
  }
  const range = parseRange(options);
  const control = reachControlPlane(shell, options);
  const registry = control.client("registry", RegistryService);
  const deletedNodes: DeletedNode[] = [];
  let left = range.limit ?? Number.POSITIVE_INFINITY;
  let pageToken = range.token;
  do {
    const request = { pageSize: Math.min(PAGE_SIZE, left), pageToken };
    const page = await control.attempt("registry", "list deleted nodes", () => registry.listDeletedNodes(request));
    deletedNodes.push(...page.deletedNodes);
    left -= page.deletedNodes.length;
    pageToken = page.nextPageToken;
  } while (pageToken !== "" && left > 0);
  const hideHeader = options.hideHeader ?? false;
  if (format === "csv") {
    shell.out.write(`${hideHeader ? "" : csvHeader(COLUMNS)}${csvRows(COLUMNS, deletedNodes)}`);
  } else if (format === "table") {
    const paint = options.style ? choosePaint(shell, options) : paintNothing;
    const look = { hideHeader, wide: options.wide ?? false, paint };
    shell.out.write(new TablePrinter(COLUMNS, look).print(deletedNodes));
  } else {
    const { formatStructured, toPlain } = await import("../output/structured.ts");
    const answer = { deletedNodes, nextPageToken: pageToken };
    const message = create(ListDeletedNodesResponseSchema, answer);
    shell.out.write(await formatStructured(format, toPlain(ListDeletedNodesResponseSchema, message)));
    return;
  }
  if (pageToken !== "") shell.err.write(`more nodes: --next-token ${pageToken}\n`);
};

const COLUMNS: readonly Column<DeletedNode>[] = [
  { title: "ID", name: "id", cell: ({ nodeId }) => ({ text: nodeId }) },
  { title: "TYPE", name: "type", cell: ({ type }) => ({ text: typeWord(type) }) },
  { title: "DELETED", name: "deleted", cell: ({ deleteTime }) => optional(timeText(deleteTime)) },
  { title: "ACTOR", name: "actor", cell: ({ actor }) => optional(actor) },
  { title: "REASON", name: "reason", cell: ({ reason }) => optional(reason) },
  { title: "MESSAGE", name: "message", limit: 60, cell: ({ message }) => optional(message) },
  {
    title: "APPROVAL",
    name: "approval",
    cell: ({ membership }) => ({ text: membershipWord(membership?.state) }),
  },
  { title: "STATUS", name: "status", cell: ({ health }) => ({ text: healthWord(health?.state) }) },
  {
    title: "CONNECTION",
    name: "connection",
    cell: ({ connection }) => ({ text: connectionWord(connection?.state) }),
  },
];

function optional(text: string) {
  return text === "" ? { text: "-", raw: "" } : { text };
}

function timeText(time: DeletedNode["deleteTime"]): string {
  return time === undefined ? "" : new Date(timestampMs(time)).toISOString();
}
