import { setTimeout as sleep } from "node:timers/promises";
import { create } from "@bufbuild/protobuf";
import {
  GetNodeHealthResponseSchema,
  HealthQueryService,
  ListNodeHealthResponseSchema,
  type NodeHealth,
  NodeHealthSchema,
} from "@rollcall/api/rollcall/health/v1/health_query_pb";
import { type ControlPlane, reachControlPlane } from "../client/control-plane.ts";
import type { Invocation, Verb } from "../command.ts";
import { Failure, UsageError } from "../failure.ts";
import { outputFormat, toPlain, writePlain } from "../output/format.ts";
import { itemWriter, type ListingOptions, printListing, readPages } from "../output/listing.ts";
import { openScreen } from "../output/screen.ts";
import { choosePaint, columnsOf } from "../output/style.ts";
import { formatTime } from "../output/units.ts";
import type { Shell } from "../shell.ts";
import { healthColumns, type ObservedNode } from "./health-columns.ts";
import { healthPanel, type PanelLook, sparkWidthFor } from "./health-panel.ts";
import { usageHistory } from "./usage.ts";

/** What `node health` takes. */
export interface NodeHealthOptions extends ListingOptions {
  readonly follow?: boolean;
}

/** Nodes of one page. Each comes with its 60 samples. */
const PAGE_SIZE = 100;
/** Samples of a sparkline in a table; a wide one shows all. */
const TABLE_SPARK_WIDTH = 20;
/** As many samples as a replica keeps. */
const ALL_SAMPLES = 60;
const RETRY_MS = 1_000;

/**
 * `node health [NODE]`: live usage with sparklines of the last 60 samples, of one node or of all that are connected. In
 * JSON and YAML a rollcall.health.v1.GetNodeHealthResponse or ListNodeHealthResponse.
 */
export const nodeHealth: Verb<NodeHealthOptions> = async (invocation) => {
  const reference = invocation.args[0];
  const control = reachControlPlane(invocation.shell, invocation.options);
  if (invocation.options.follow) await follow(invocation, control, reference);
  else if (reference === undefined) await allNodes(invocation, control);
  else await oneNode(invocation, control, reference);
};

async function getNodeHealth(control: ControlPlane, node: string, allowPrefix: boolean): Promise<NodeHealth> {
  const health = control.client("health", HealthQueryService);
  const what = `read the health of node ${node}`;
  const { nodeHealth: answer } = await control.attempt("health", what, () =>
    health.getNodeHealth({ node, allowPrefix }),
  );
  if (answer === undefined) throw new Failure(`failed to ${what}: the answer holds no node`);
  return answer;
}

async function oneNode(
  invocation: Invocation<NodeHealthOptions>,
  control: ControlPlane,
  reference: string,
): Promise<void> {
  const { shell, options } = invocation;
  const format = outputFormat(options, ["table", "name", "json", "yaml", "csv"]);
  const node = await getNodeHealth(control, reference, format === "table");
  if (format === "table") {
    shell.out.write(healthPanel(node, panelLook(shell, options)));
  } else if (format === "json" || format === "yaml") {
    const answer = create(GetNodeHealthResponseSchema, { nodeHealth: node });
    await writePlain(shell, format, toPlain(GetNodeHealthResponseSchema, answer));
  } else {
    itemWriter(invocation, format, { columns: healthColumns(0), nameOf })([observed(node)]);
  }
}

async function allNodes(invocation: Invocation<NodeHealthOptions>, control: ControlPlane): Promise<void> {
  const { wide, output } = invocation.options;
  const health = control.client("health", HealthQueryService);
  await printListing(invocation, {
    columns: healthColumns(wide === true || output === "wide" ? ALL_SAMPLES : TABLE_SPARK_WIDTH),
    nameOf,
    pages: readPages(
      (part) =>
        control.attempt("health", "list the health of nodes", () =>
          health.listNodeHealth({ ...part, includeSamples: true }),
        ),
      { size: PAGE_SIZE, countOf: ({ nodes }) => nodes.length },
    ),
    itemsOf: ({ nodes }) => nodes.map(observed),
    whole: (pages) => {
      const answer = create(ListNodeHealthResponseSchema);
      answer.nodes = pages.flatMap(({ nodes }) => nodes);
      return toPlain(ListNodeHealthResponseSchema, answer);
    },
  });
}

function nameOf({ health }: ObservedNode): string {
  return health.nodeId;
}

function observed(health: NodeHealth): ObservedNode {
  return { health, usage: usageHistory(health) };
}

/** How panels are drawn for this call. */
export function panelLook(shell: Shell, options: Invocation["options"]): PanelLook {
  const columns = columnsOf(shell);
  return { paint: choosePaint(shell, options), sparkWidth: sparkWidthFor(columns), columns };
}

/**
 * Redraw one node's health each time it is heard, which is every 2 s while it is watched, until Ctrl-C. An outage of
 * the control plane is shown, and the watch goes on after it. Throws Failure when the node is gone.
 */
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
  // Asked first: a mistyped name or address is an ordinary failure.
  const { nodeId } = await getNodeHealth(control, reference, true);
  const screen = openScreen(shell.out);
  const show = (body: string) => screen.show(`${formatTime(shell.wallMs())}  live\n\n${body}`);
  try {
    for (;;) {
      try {
        for await (const node of liveHealth(control, nodeId)) show(healthPanel(node, panelLook(shell, options)));
        throw new Failure(`node ${nodeId} is gone`);
      } catch (error) {
        if (error instanceof Failure || shell.interrupted.aborted) throw error;
        show(`${await control.explain("health", error)}\n`);
        await sleep(RETRY_MS, undefined, { signal: shell.interrupted });
      }
    }
  } finally {
    screen.close();
  }
}

/** One node's health with the samples so far, each time it changes. It ends when the node is gone. */
async function* liveHealth(control: ControlPlane, nodeId: string): AsyncGenerator<NodeHealth> {
  const health = control.client("health", HealthQueryService);
  const request = { nodeIds: [nodeId], includeSamples: true };
  let samples: NodeHealth["samples"] = [];
  // 0: a watch has no deadline.
  for await (const { nodes, goneIds } of health.watchNodeHealth(request, { timeoutMs: 0 })) {
    for (const node of nodes) {
      const isWhole = node.samples.length > 0;
      const more = node.latest === undefined ? [] : [node.latest];
      samples = isWhole ? node.samples : [...samples, ...more].slice(-ALL_SAMPLES);
      yield create(NodeHealthSchema, { ...node, samples });
    }
    if (goneIds.includes(nodeId)) return;
  }
}
