import { HealthQueryService } from "@rollcall/api/rollcall/health/v1/health_query_pb";
import { reachControlPlane } from "../client/control-plane.ts";
import { UsageError } from "../failure.ts";
import type { Verb } from "../invocation.ts";
import { getNode } from "../nodes/get-node.ts";
import { sparkWidthFor } from "../nodes/health-panel.ts";
import { HealthJoin } from "../nodes/read-health.ts";
import { statusPanel } from "../nodes/status-panel.ts";
import { choosePaint } from "../output/format.ts";

/** `node status`: one node on one screen, for people. Programs read `node describe`. */
export const nodeStatus: Verb = async ({ shell, args, options }) => {
  if (options.output !== undefined && options.output !== "table") {
    throw new UsageError("node status is for people; `node describe` prints json and yaml");
  }
  const control = reachControlPlane(shell, options);
  const node = await getNode(control, args[0] ?? "", "show the status of");
  const join = new HealthJoin(control, control.client("health", HealthQueryService), (line) => shell.err.write(line), {
    includeSamples: true,
  });
  const health = (await join.read([node.id])).get(node.id);
  const look = {
    paint: choosePaint(shell, options),
    sparkWidth: sparkWidthFor(shell.out.columns()),
  };
  shell.out.write(statusPanel({ node, health, nowMs: shell.wallMs() }, look));
};
