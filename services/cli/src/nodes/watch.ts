import { RegistryService } from "@rollcall/api/rollcall/registry/v1/registry_pb";
import { type ControlPlane, reachControlPlane } from "../client/control-plane.ts";
import { parseCount, parseDurationMs, UsageError } from "../failure.ts";
import type { Invocation, Verb } from "../invocation.ts";
import { type Draw, redraw } from "../output/redraw.ts";
import { choosePaint, columnsOf } from "../output/style.ts";
import { type Column, TablePrinter } from "../output/table.ts";
import type { Shell } from "../shell.ts";
import { statusPanel } from "./describe.ts";
import { panelFormat } from "./health.ts";
import { type ObservedNode, usageColumns } from "./health-columns.ts";
import { type ListedNode, listColumns } from "./list-columns.ts";
import { HealthJoin } from "./read-health.ts";
import { getNode, readNodes } from "./read-nodes.ts";
import { parseSelection, type SelectionOptions } from "./selection.ts";
import { usageHistory } from "./usage.ts";

/** The options of `node watch`. */
export interface NodeWatchOptions extends SelectionOptions {
  readonly interval?: string;
  readonly count?: string;
}

const DEFAULT_INTERVAL_MS = 2000;
/** Maximum number of nodes in one frame without a terminal. */
const MOST_NODES = 200;
/** Number of lines of a frame that do not show nodes. */
const OTHER_LINES = 4;
/** Number of samples in a sparkline. */
const SPARK_WIDTH = 10;

/** The states of the node, then the usage of the machine. */
const COLUMNS: readonly Column<ListedNode & Pick<ObservedNode, "usage">>[] = [
  ...listColumns(["scheduling", "connection", "seen"]),
  ...usageColumns(SPARK_WIDTH),
];

/**
 * `node watch [NODE]`: redraw the fleet or one node at an interval until Ctrl-C. Without a terminal it prints one
 * snapshot after the other. During an outage of the control plane, show the outage and resume afterwards.
 */
export const nodeWatch: Verb<NodeWatchOptions> = async (invocation) => {
  const { shell, args, options } = invocation;
  if (options.output !== undefined && options.output !== "table") {
    throw new UsageError("node watch only prints tables; use `node list` or `node health` for json, yaml and csv");
  }
  const intervalMs =
    options.interval === undefined ? DEFAULT_INTERVAL_MS : parseDurationMs("interval", options.interval);
  const count = options.count === undefined ? Number.POSITIVE_INFINITY : parseCount("count", options.count, 1);
  const control = reachControlPlane(shell, options);
  const reference = args[0];
  const draw = reference === undefined ? drawFleet(invocation, control) : drawNode(invocation, control, reference);
  await redraw(shell, draw, { intervalMs, count });
};

function drawFleet({ shell, options }: Invocation<NodeWatchOptions>, control: ControlPlane): Draw {
  const selection = parseSelection(options);
  const registry = control.client("registry", RegistryService);
  return async (rows) => {
    const limit = rows === 0 ? MOST_NODES : Math.max(1, Math.min(MOST_NODES, rows - OTHER_LINES));
    const paint = choosePaint(shell, options);
    const table = new TablePrinter(COLUMNS, { paint, columns: columnsOf(shell) });
    for await (const { nodes, nextPageToken } of readNodes(control, registry, selection, { limit })) {
      const ids = nodes.map(({ id }) => id);
      const { health, warning } = await readHealth(shell, control, ids);
      const lines = table.print(
        nodes.map((node) => {
          const known = health.get(node.id);
          return { node, health: known, usage: usageHistory(known) };
        }),
      );
      const more = nextPageToken === "" ? "" : paint("dim", "and more\n");
      return lines + more + warning;
    }
    return "";
  };
}

function drawNode({ shell, options }: Invocation<NodeWatchOptions>, control: ControlPlane, reference: string): Draw {
  return async () => {
    const node = await getNode(control, reference, "watch");
    const { health, warning } = await readHealth(shell, control, [node.id]);
    const input = { node, health: health.get(node.id), nowMs: shell.wallMs() };
    return statusPanel(input, panelFormat(shell, options)) + warning;
  };
}

/**
 * Read health for one frame. Warnings become part of the frame, because printing them separately would spoil the
 * screen.
 */
async function readHealth(shell: Shell, control: ControlPlane, nodeIds: readonly string[]) {
  let warning = "";
  const join = new HealthJoin(control, {
    warn: (line) => {
      if (!shell.interrupted.aborted) warning = line;
    },
    includeSamples: true,
  });
  return { health: await join.read(nodeIds), warning };
}
