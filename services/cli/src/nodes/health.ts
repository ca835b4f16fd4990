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
import { untilSilent } from "../client/keep-watching.ts";
import { Failure, UsageError } from "../failure.ts";
import type { Invocation, Verb } from "../invocation.ts";
import { outputFormat, toPlain, writePlain } from "../output/format.ts";
import { isWide, itemWriter, type ListingOptions, printListing, readPages } from "../output/listing.ts";
import { openScreen } from "../output/screen.ts";
import { choosePaint, columnsOf } from "../output/style.ts";
import { formatTime } from "../output/units.ts";
import type { Shell } from "../shell.ts";
import { healthColumns, type ObservedNode } from "./health-columns.ts";
import { healthPanel, type PanelFormat, sparkWidthFor } from "./health-panel.ts";
import { usageHistory } from "./usage.ts";

/** The options of `node health`. */
export interface NodeHealthOptions extends ListingOptions {
  readonly follow?: boolean;
}

/** Number of nodes per page. Each node has 60 samples. */
const PAGE_SIZE = 100;
/** Number of samples in a sparkline of a table. A wide table shows all samples. */
const TABLE_SPARK_WIDTH = 20;
/** The number of samples that a replica keeps. */
const ALL_SAMPLES = 60;
const RETRY_MS = 1_000;

/**
 * `node health [NODE]`: show live usage with sparklines of the last 60 samples, of one node or of all connected nodes.
 * JSON and YAML print a rollcall.health.v1.GetNodeHealthResponse or ListNodeHealthResponse.
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
  if (answer === undefined) throw new Failure(`failed to ${what}: the response contains no node`);
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
    shell.out.write(healthPanel(node, panelFormat(shell, options)));
  } else if (format === "json" || format === "yaml") {
    const answer = create(GetNodeHealthResponseSchema, { nodeHealth: node });
    await writePlain(shell, format, toPlain(GetNodeHealthResponseSchema, answer));
  } else {
    itemWriter(invocation, format, { columns: healthColumns(0), nameOf })([observed(node)]);
  }
}

async function allNodes(invocation: Invocation<NodeHealthOptions>, control: ControlPlane): Promise<void> {
  const health = control.client("health", HealthQueryService);
  await printListing(invocation, {
    columns: healthColumns(isWide(invocation.options) ? ALL_SAMPLES : TABLE_SPARK_WIDTH),
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

/** The panel format for this call. */
export function panelFormat(shell: Shell, options: Invocation["options"]): PanelFormat {
  const columns = columnsOf(shell);
  return { paint: choosePaint(shell, options), sparkWidth: sparkWidthFor(columns), columns };
}

/**
 * Redraw one node's health each time it reports, which is every 2 s while it is watched, until Ctrl-C. During an outage
 * of the control plane, show the outage and resume afterwards. Throws Failure when the node no longer exists.
 */
async function follow(
  { shell, options }: Invocation<NodeHealthOptions>,
  control: ControlPlane,
  reference: string | undefined,
): Promise<void> {
  if (reference === undefined) {
    throw new UsageError("node health --follow requires a node; `node watch` shows all nodes");
  }
  if (options.output !== undefined && options.output !== "table") {
    throw new UsageError("node health --follow only prints tables; leave out --follow for json, yaml and csv");
  }
  // Make this call first, so that a mistyped name or address fails like any other command.
  const { nodeId } = await getNodeHealth(control, reference, true);
  const screen = openScreen(shell.out);
  const show = (body: string) => screen.show(`${formatTime(shell.wallMs())}  live\n\n${body}`);
  try {
    for (;;) {
      try {
        for await (const node of liveHealth(shell, control, nodeId))
          show(healthPanel(node, panelFormat(shell, options)));
        throw new Failure(`node ${nodeId} no longer exists`);
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

/** Yield one node's health with the samples so far each time it changes. Ends when the node no longer exists. */
async function* liveHealth(shell: Shell, control: ControlPlane, nodeId: string): AsyncGenerator<NodeHealth> {
  const health = control.client("health", HealthQueryService);
  const request = { nodeIds: [nodeId], includeSamples: true };
  let samples: NodeHealth["samples"] = [];
  for await (const { nodes, goneIds } of untilSilent(shell, (call) => health.watchNodeHealth(request, call))) {
    for (const node of nodes) {
      const isWhole = node.samples.length > 0;
      const more = node.latest === undefined ? [] : [node.latest];
      samples = isWhole ? node.samples : [...samples, ...more].slice(-ALL_SAMPLES);
      yield create(NodeHealthSchema, { ...node, samples });
    }
    if (goneIds.includes(nodeId)) return;
  }
}
