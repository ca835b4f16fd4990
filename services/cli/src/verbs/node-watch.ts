import { setTimeout as sleep } from "node:timers/promises";
import { HealthQueryService } from "@rollcall/api/rollcall/health/v1/health_query_pb";
import { RegistryService } from "@rollcall/api/rollcall/registry/v1/registry_pb";
import { type ControlPlane, reachControlPlane } from "../client/control-plane.ts";
import { Failure, parseCount, parseDurationMs, UsageError } from "../failure.ts";
import type { Verb } from "../invocation.ts";
import { getNode } from "../nodes/get-node.ts";
import { type PanelLook, sparkWidthFor } from "../nodes/health-panel.ts";
import { HealthJoin } from "../nodes/read-health.ts";
import { parseSelection, readNodes, type SelectionOptions } from "../nodes/read-nodes.ts";
import { statusPanel } from "../nodes/status-panel.ts";
import { usageHistory } from "../nodes/usage.ts";
import { watchColumns } from "../nodes/watch-columns.ts";
import { choosePaint } from "../output/format.ts";
import { openScreen } from "../output/screen.ts";
import { TablePrinter } from "../output/table.ts";
import { formatTime } from "../output/units.ts";
import type { Shell } from "../shell.ts";

/** What `node watch` takes. */
export interface NodeWatchOptions extends SelectionOptions {
  readonly interval?: string;
  readonly count?: string;
}

/** Draws what is true now in at most so many lines; 0 lines means as many as it takes. */
type Draw = (rows: number) => Promise<string>;

const DEFAULT_INTERVAL_MS = 2000;
/** Nodes of one frame where no terminal sets a limit. */
const MOST_NODES = 200;
/** Lines of a frame that are not nodes. */
const OTHER_LINES = 4;

/**
 * `node watch [NODE]`: the fleet, or one node, redrawn at an interval until Ctrl-C. Without a terminal it prints one
 * snapshot after the other. When the control plane goes away it says so, and goes on when it is back.
 */
export const nodeWatch: Verb<NodeWatchOptions> = async ({ shell, args, options }) => {
  if (options.output !== undefined && options.output !== "table") {
    throw new UsageError("node watch is for people; `node list` and `node health` print json, yaml and csv");
  }
  const intervalMs =
    options.interval === undefined ? DEFAULT_INTERVAL_MS : parseDurationMs("interval", options.interval);
  const count = options.count === undefined ? Number.POSITIVE_INFINITY : parseCount("count", options.count, 1);
  const control = reachControlPlane(shell, options);
  const look = () => ({
    paint: choosePaint(shell, options),
    sparkWidth: sparkWidthFor(shell.out.columns()),
  });
  const reference = args[0];
  const draw =
    reference === undefined
      ? drawFleet(shell, control, parseSelection(options), look)
      : drawNode(shell, control, reference, look);
  await redraw(shell, draw, { intervalMs, count });
};

async function redraw(
  shell: Shell,
  draw: Draw,
  { intervalMs, count }: { readonly intervalMs: number; readonly count: number },
): Promise<void> {
  // Drawn before the screen is opened: a mistyped name or address should be an ordinary failure.
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
  } catch (error) {
    // Ctrl-C is how a watch ends; it is no failure.
    if (!shell.interrupted.aborted) throw error;
  } finally {
    screen.close();
  }
}

function drawFleet(
  shell: Shell,
  control: ControlPlane,
  selection: ReturnType<typeof parseSelection>,
  look: () => PanelLook,
): Draw {
  const registry = control.client("registry", RegistryService);
  return async (rows) => {
    const limit = rows === 0 ? MOST_NODES : Math.max(1, Math.min(MOST_NODES, rows - OTHER_LINES));
    const { paint } = look();
    const table = new TablePrinter(watchColumns(), { hideHeader: false, wide: false, paint });
    for await (const page of readNodes(control, registry, selection, { limit, token: "" })) {
      const { health, warning } = await readHealth(
        shell,
        control,
        page.nodes.map(({ id }) => id),
      );
      const lines = table.print(
        page.nodes.map((node) => {
          const known = health.get(node.id);
          return { node, health: known, usage: usageHistory(known) };
        }),
      );
      const more = page.nextToken === "" ? "" : paint("dim", "and more\n");
      return lines + more + warning;
    }
    return "";
  };
}

function drawNode(shell: Shell, control: ControlPlane, reference: string, look: () => PanelLook): Draw {
  return async () => {
    const node = await getNode(control, reference, "watch");
    const { health, warning } = await readHealth(shell, control, [node.id]);
    const input = { node, health: health.get(node.id), nowMs: shell.wallMs() };
    return statusPanel(input, look()) + warning;
  };
}

/** Health for one frame. A warning becomes part of the frame: written past it, it would spoil the screen. */
async function readHealth(shell: Shell, control: ControlPlane, nodeIds: readonly string[]) {
  let warning = "";
  const join = new HealthJoin(
    control,
    control.client("health", HealthQueryService),
    (line) => {
      if (!shell.interrupted.aborted) warning = line;
    },
    { includeSamples: true },
  );
  return { health: await join.read(nodeIds), warning };
}
