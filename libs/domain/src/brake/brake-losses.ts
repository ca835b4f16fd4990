import { BRAKE_CLUSTER, type BrakeState } from "./brake.ts";
import type { BrakeRow, GroupLosses } from "./brake-plan.ts";

/** Lost nodes of one group, or of the cluster. */
export type Losses = Pick<GroupLosses, "lost" | "unsettled" | "pending">;

/** The losses of each group ("" for nodes without a group), and those of the cluster: the sum over all groups. */
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

/**
 * The number of the last loss that a group's window excludes. The window covers the last minute or, during a storm, the
 * time since the storm began.
 */
export function windowLossOf({ mode, windowLoss }: Storm, window: number): number {
  return mode === "NORMAL" ? Math.max(windowLoss, window) : windowLoss;
}

/** The last excluded loss number of each group whose window differs from the common one, keyed by group. */
export function ownWindows(storms: Iterable<readonly [string, Storm]>, window: number): ReadonlyMap<string, number> {
  const own = [...storms].map(([group, storm]) => [group, windowLossOf(storm, window)] as const);
  return new Map(own.filter(([, loss]) => loss !== window));
}

/** A brake's state: its mode, or FROZEN while an operator has frozen it. */
export function brakeStateOf({ mode, frozen }: Pick<BrakeRow, "mode" | "frozen">): BrakeState {
  return frozen === null ? mode : "FROZEN";
}
