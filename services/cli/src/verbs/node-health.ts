import { create } from "@bufbuild/protobuf";
import {
  GetNodeHealthResponseSchema,
  HealthQueryService,
  ListNodeHealthResponseSchema,
  type NodeHealth,
} from "@rollcall/api/rollcall/health/v1/health_query_pb";
import { type ControlPlane, reachControlPlane } from "../client/control-plane.ts";
import { Failure, UsageError } from "../failure.ts";
import type { Invocation, Verb } from "../invocation.ts";
import { healthColumns } from "../nodes/health-columns.ts";
import { healthPanel, sparkWidthFor } from "../nodes/health-panel.ts";
import { usageHistory } from "../nodes/usage.ts";
import { choosePaint, outputFormat } from "../output/format.ts";
import { csvHeader, csvRows, TablePrinter } from "../output/table.ts";

/** What `node health` takes. */
export interface NodeHealthOptions {
  readonly wide?: boolean;
  readonly hideHeader?: boolean;
  readonly follow?: boolean;
}

/** Nodes of one page. Each comes with its 60 samples. */
const PAGE_SIZE = 100;
/** Samples of a sparkline in a table; --wide shows all. */
const TABLE_SPARK_WIDTH = 20;
const ALL_SAMPLES = 60;

/**
 * `node health [NODE]`: live usage with sparklines of the last 60 samples, of one node or of all that are held. In JSON
 * and YAML a rollcall.health.v1.GetNodeHealthResponse or ListNodeHealthResponse.
 */
export const nodeHealth: Verb<NodeHealthOptions> = async (invocation) => {
  const reference = invocation.args[0];
  const control = reachControlPlane(invocation.shell, invocation.options);
  if (invocation.options.follow) await follow(invocation, control, reference);
  else if (reference === undefined) await allNodes(invocation, control);
  else await oneNode(invocation, control, reference);
};

/** Read one node's health by its id or an unambiguous prefix. */
export async function getNodeHealth(control: ControlPlane, reference: string): Promise<NodeHealth> {
  const health = control.client("health", HealthQueryService);
  const what = `read the health of node ${reference}`;
  const { nodeHealth: answer } = await control.attempt("health", what, () => health.getNodeHealth({ node: reference }));
  if (answer === undefined) throw new Failure(`failed to ${what}: the answer holds no node`);
  return answer;
}

async function follow(
  { shell, options }: Invocation<NodeHealthOptions>,
  control: ControlPlane,
  reference: string | undefined,
): Promise<void> {
  if (reference === undefined) {
    throw new UsageError("node health --follow needs a node; `node watch` shows all of them");
  }
  if (options.output !== undefined && options.output !== "table") {
    throw new UsageError("node health --follow is for people; without it json, yaml and csv are printed");
  }
  // Asked first: a mistyped name or address should be an ordinary failure.
  const { nodeId } = await getNodeHealth(control, reference);
  const { followNodeHealth } = await import("./node-health-follow.ts");
  await followNodeHealth(shell, control, nodeId, () => ({
    paint: choosePaint(shell, options),
    sparkWidth: sparkWidthFor(shell.out.columns()),
  }));
}

async function oneNode(
  { shell, options }: Invocation<NodeHealthOptions>,
  control: ControlPlane,
  reference: string,
): Promise<void> {
  const format = outputFormat(options, ["table", "json", "yaml", "csv"]);
  const node = await getNodeHealth(control, reference);
  if (format === "table") {
    const sparkWidth = sparkWidthFor(shell.out.columns());
    shell.out.write(healthPanel(node, { paint: choosePaint(shell, options), sparkWidth }));
  } else if (format === "csv") {
    const columns = healthColumns(0);
    if (!options.hideHeader) shell.out.write(csvHeader(columns));
    shell.out.write(csvRows(columns, [{ health: node, usage: usageHistory(node) }]));
  } else {
    const { formatStructured, toPlain } = await import("../output/structured.ts");
    const answer = create(GetNodeHealthResponseSchema, { nodeHealth: node });
    shell.out.write(await formatStructured(format, toPlain(GetNodeHealthResponseSchema, answer)));
  }
}

async function allNodes({ shell, options }: Invocation<NodeHealthOptions>, control: ControlPlane): Promise<void> {
  const format = outputFormat(options, ["table", "json", "yaml", "csv"]);
  const pages = readPages(control);
  if (format === "json" || format === "yaml") {
    const nodes: NodeHealth[] = [];
    for await (const page of pages) nodes.push(...page);
    const { formatStructured, toPlain } = await import("../output/structured.ts");
    const answer = create(ListNodeHealthResponseSchema, { nodes });
    shell.out.write(await formatStructured(format, toPlain(ListNodeHealthResponseSchema, answer)));
    return;
  }
  const hideHeader = options.hideHeader ?? false;
  const wide = options.wide ?? false;
  const columns = healthColumns(wide ? ALL_SAMPLES : TABLE_SPARK_WIDTH);
  const table = new TablePrinter(columns, { hideHeader, wide, paint: choosePaint(shell, options) });
  if (format === "csv" && !hideHeader) shell.out.write(csvHeader(columns));
  for await (const page of pages) {
    const rows = page.map((health) => ({ health, usage: usageHistory(health) }));
    shell.out.write(format === "csv" ? csvRows(columns, rows) : table.print(rows));
  }
}

async function* readPages(control: ControlPlane): AsyncGenerator<readonly NodeHealth[]> {
  const health = control.client("health", HealthQueryService);
  let pageToken = "";
  do {
    const request = { pageSize: PAGE_SIZE, pageToken, includeSamples: true };
    const page = await control.attempt("health", "list the health of nodes", () => health.listNodeHealth(request));
    yield page.nodes;
    pageToken = page.nextPageToken;
  } while (pageToken !== "");
}
