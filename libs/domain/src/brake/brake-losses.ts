import { BRAKE_CLUSTER, type BrakeState } from "./brake.ts";
import type { BrakeRow, GroupLosses } from "./brake-plan.ts";

/** Lost nodes of one group, or of the cluster. */
export type Losses = Pick<GroupLosses, "lost" | "unsettled" | "pending">;

/** The losses of each group, "" for nodes without a group, and of the cluster, which are the sum of all. */
export function lossesByGroup(losses: readonly GroupLosses[]): ReadonlyMap<string, Losses> {
  const sum = { lost: 0, unsettled: 0, pending: 0 };
  for (const { lostOfCluster, unsettled, pending } of losses) {
    sum.lost += lostOfCluster;
    sum.unsettled += unsettled;
    sum.pending += pending;
  }
  return new Map<string, Losses>([...losses.map((it) => [it.group, it] as const), [BRAKE_CLUSTER, sum]]);
}

type Storm = Pick<BrakeRow, "mode" | "windowLoss">;

/** The loss up to which none counts for a group: those of the last minute count, or those of a storm since it began. */
export function windowLossOf({ mode, windowLoss }: Storm, window: number): number {
  return mode === "NORMAL" ? Math.max(windowLoss, window) : windowLoss;
}

/** By group, the window losses that differ from the one of all others. */
export function ownWindows(storms: Iterable<readonly [string, Storm]>, window: number): ReadonlyMap<string, number> {
  const own = [...storms].map(([group, storm]) => [group, windowLossOf(storm, window)] as const);
  return new Map(own.filter(([, loss]) => loss !== window));
}

/** What a brake does: its mode, unless an operator has frozen it. */
export function brakeStateOf({ mode, frozen }: Pick<BrakeRow, "mode" | "frozen">): BrakeState {
  return frozen === null ? mode : "FROZEN";
}
