import { setTimeout as sleep } from "node:timers/promises";
import { HealthQueryService } from "@rollcall/api/rollcall/health/v1/health_query_pb";
import type { ControlPlane } from "../client/control-plane.ts";
import { Failure } from "../failure.ts";
import { healthPanel, type PanelLook } from "../nodes/health-panel.ts";
import { liveHealth } from "../nodes/live-health.ts";
import { openScreen } from "../output/screen.ts";
import { formatTime } from "../output/units.ts";
import type { Shell } from "../shell.ts";

const TRY_AGAIN_MS = 1_000;

/**
 * Redraw one node's health each time something is heard of it, which is every 2 s while it is watched, until Ctrl-C.
 * When the control plane goes away it says so, and goes on when it is back. Throws a Failure when the node is gone.
 */
export async function followNodeHealth(
  shell: Shell,
  control: ControlPlane,
  nodeId: string,
  look: () => PanelLook,
): Promise<void> {
  const health = control.client("health", HealthQueryService);
  const screen = openScreen(shell.out);
  const show = (body: string) => screen.show(`${formatTime(shell.wallMs())}  live\n\n${body}`);
  try {
    for (;;) {
      try {
        for await (const node of liveHealth(health, nodeId)) show(healthPanel(node, look()));
        throw new Failure(`node ${nodeId} is gone`);
      } catch (error) {
        if (error instanceof Failure || shell.interrupted.aborted) throw error;
        show(`${await control.explain("health", error)}\n`);
        await sleep(TRY_AGAIN_MS, undefined, { signal: shell.interrupted });
      }
    }
  } catch (error) {
    // Ctrl-C is how it ends; it is no failure.
    if (!shell.interrupted.aborted) throw error;
  } finally {
    screen.close();
  }
}
