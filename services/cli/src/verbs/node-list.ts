import { create } from "@bufbuild/protobuf";
import { HealthQueryService } from "@rollcall/api/rollcall/health/v1/health_query_pb";
import type { Node } from "@rollcall/api/rollcall/node/v1/node_pb";
import { ListNodesResponseSchema, RegistryService } from "@rollcall/api/rollcall/registry/v1/registry_pb";
import { COLUMN_GROUPS, DEFAULT_GROUPS } from "../choices.ts";
import { reachControlPlane } from "../client/control-plane.ts";
import { pickWords } from "../failure.ts";
import type { Verb } from "../invocation.ts";
import { type ColumnGroup, type ListedNode, listColumns } from "../nodes/list-columns.ts";
import { HealthJoin } from "../nodes/read-health.ts";
import { type NodePage, parseRange, parseSelection, readNodes, type SelectionOptions } from "../nodes/read-nodes.ts";
import { choosePaint, outputFormat } from "../output/format.ts";
import { paintNothing } from "../output/style.ts";
import { type Column, csvHeader, csvRows, TablePrinter } from "../output/table.ts";

/** What `node list` takes. */
export interface NodeListOptions extends SelectionOptions {
  readonly show?: string;
  readonly limit?: string;
  readonly nextToken?: string;
  readonly wide?: boolean;
  readonly hideHeader?: boolean;
  /** False with --no-style. */
  readonly style: boolean;
}

/** Writes rows as they come, page by page. */
type PageWriter = (rows: readonly ListedNode[]) => void;

/** `node list`: the nodes that match, as a table, CSV, or a rollcall.registry.v1.ListNodesResponse in JSON or YAML. */
export const nodeList: Verb<NodeListOptions> = async (invocation) => {
  const { shell, options } = invocation;
  const format = outputFormat(options, ["table", "json", "yaml", "csv"]);
  const selection = parseSelection(options);
  const range = parseRange(options);
  const groups = parseGroups(options.show);
  const control = reachControlPlane(shell, options);
  const registry = control.client("registry", RegistryService);
  const pages = readNodes(control, registry, selection, range);

  if (format === "json" || format === "yaml") {
    const nodes: Node[] = [];
    let [nextPageToken, revision] = ["", 0n];
    for await (const page of pages) {
      nodes.push(...page.nodes);
      ({ nextToken: nextPageToken, revision } = page);
    }
    const { formatStructured, toPlain } = await import("../output/structured.ts");
    const answer = create(ListNodesResponseSchema, { nodes, nextPageToken, revision });
    shell.out.write(await formatStructured(format, toPlain(ListNodesResponseSchema, answer)));
    return;
  }

  const join = groups.includes("seen")
    ? new HealthJoin(control, control.client("health", HealthQueryService), (line) => shell.err.write(line), {
        includeSamples: false,
      })
    : null;
  const write = createWriter(invocation, format, listColumns(groups));
  let last: NodePage = { nodes: [], nextToken: "", revision: 0n };
  for await (const page of pages) {
    const health = await join?.read(page.nodes.map((node) => node.id));
    write(page.nodes.map((node) => ({ node, health: health?.get(node.id) })));
    last = page;
  }
  if (last.nextToken !== "") shell.err.write(`more nodes: --next-token ${last.nextToken}\n`);
};

function createWriter(
  { shell, options }: Parameters<Verb<NodeListOptions>>[0],
  format: "table" | "csv",
  columns: readonly Column<ListedNode>[],
): PageWriter {
  const hideHeader = options.hideHeader ?? false;
  if (format === "csv") {
    if (!hideHeader) shell.out.write(csvHeader(columns));
    return (rows) => shell.out.write(csvRows(columns, rows));
  }
  const paint = options.style ? choosePaint(shell, options) : paintNothing;
  const table = new TablePrinter(columns, { hideHeader, wide: options.wide ?? false, paint });
  return (rows) => shell.out.write(table.print(rows));
}

function parseGroups(show: string | undefined): readonly ColumnGroup[] {
  return show === undefined ? DEFAULT_GROUPS : pickWords("show", show, COLUMN_GROUPS);
}
