import { setTimeout as sleep } from "node:timers/promises";
import { RegistryService } from "@rollcall/api/rollcall/registry/v1/registry_pb";
import { type ControlPlane, reachControlPlane } from "../client/control-plane.ts";
import type { Invocation, Verb } from "../command.ts";
import { Failure, parseCount, parseDurationMs, UsageError } from "../failure.ts";
import { openScreen } from "../output/screen.ts";
import { choosePaint, columnsOf } from "../output/style.ts";
import { type Column, TablePrinter } from "../output/table.ts";
import { formatTime } from "../output/units.ts";
import type { Shell } from "../shell.ts";
import { statusPanel } from "./describe.ts";
import { panelLook } from "./health.ts";
import { type ObservedNode, usageColumns } from "./health-columns.ts";
import { type ListedNode, listColumns } from "./list-columns.ts";
import { HealthJoin } from "./read-health.ts";
import { getNode, readNodes } from "./read-nodes.ts";
import { parseSelection, type SelectionOptions } from "./selection.ts";
import { usageHistory } from "./usage.ts";

/** What `node watch` takes. */
export interface NodeWatchOptions extends SelectionOptions {
  readonly interval?: string;
  readonly count?: string;
}

/** Draws what is true now in a number of lines at most; 0 means as many as it takes. */
type Draw = (rows: number) => Promise<string>;

const DEFAULT_INTERVAL_MS = 2000;
/** Nodes of one frame where no terminal sets a limit. */
const MOST_NODES = 200;
/** Lines of a frame that are not nodes. */
const OTHER_LINES = 4;
/** Samples of a sparkline. */
const SPARK_WIDTH = 10;

/** The states, then what the machine is doing. */
const COLUMNS: readonly Column<ListedNode & Pick<ObservedNode, "usage">>[] = [
  ...listColumns(["scheduling", "connection", "seen"]),
  ...usageColumns(SPARK_WIDTH),
];

/**
 * `node watch [NODE]`: the fleet, or one node, redrawn at an interval until Ctrl-C. Without a terminal it prints one
 * snapshot after the other. An outage of the control plane is shown, and the watch goes on after it.
 */
export const nodeWatch: Verb<NodeWatchOptions> = async (invocation) => {
  const { shell, args, options } = invocation;
  if (options.output !== undefined && options.output !== "table") {
    throw new UsageError("node watch is for people; `node list` and `node health` print json, yaml and csv");
  }
  const intervalMs =
    options.interval === undefined ? DEFAULT_INTERVAL_MS : parseDurationMs("interval", options.interval);
  const count = options.count === undefined ? Number.POSITIVE_INFINITY : parseCount("count", options.count, 1);
  const control = reachControlPlane(shell, options);
  const reference = args[0];
  const draw = reference === undefined ? drawFleet(invocation, control) : drawNode(invocation, control, reference);
  await redraw(shell, draw, { intervalMs, count });
};

async function redraw(
  shell: Shell,
  draw: Draw,
  { intervalMs, count }: { readonly intervalMs: number; readonly count: number },
): Promise<void> {
  // Drawn before the screen is opened: a mistyped name or address is an ordinary failure.
  let body = await draw(shell.out.rows());
  const screen = openScreen(shell.out);
  try {
    for (let drawn = 1; ; drawn++) {
      screen.show(`${formatTime(shell.wallMs())}  every ${intervalMs / 1000}s\n\n${body}`);
      if (drawn >= count) return;
      await sleep(intervalMs, undefined, { signal: shell.interrupted });
      body = await draw(screen.rows()).catch((error: unknown) => {
        if (error instanceof Failure && !shell.interrupted.aborted) return `${error.message}\n`;
        throw error;
      });
    }
  } finally {
    screen.close();
  }
}

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
    return statusPanel(input, panelLook(shell, options)) + warning;
  };
}

/** Health for one frame. A warning becomes part of the frame: written beside it, it would spoil the screen. */
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
