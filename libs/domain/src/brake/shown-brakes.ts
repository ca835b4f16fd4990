import { BRAKE_CLUSTER, type BrakeCounts, type BrakeState, brakeCounts, toldCounts } from "./brake.ts";
import { brakeStateOf, lossesByGroup, ownWindows } from "./brake-losses.ts";
import type { BrakeMarks, BrakeReading, BrakeRow } from "./brake-plan.ts";
import { addBrakeSums } from "./brake-sums.ts";
import { type BrakeSetting, type ReleaseRate, releaseRate } from "./release-rate.ts";

/** A brake as shown to people. Unlike the planner, it has no memory of the last minute. */
export interface ShownBrake {
  readonly group: string;
  /** The row in the store; null for a brake that was never set. */
  readonly row: BrakeRow | null;
  readonly state: BrakeState;
  readonly counts: Omit<BrakeCounts, "unsettled">;
  /** Pending reactions. */
  readonly pending: number;
  readonly rate: ReleaseRate | null;
}

/**
 * Time after which a loss counts as settled, in milliseconds: long enough for each replica to report twice.
 * A single scan cannot count reports, as BrakeHistory does.
 */
export const SHOWN_SETTLED_MS = 5_000;

/** Which losses to count for display. */
export function shownMarks(
  rows: readonly BrakeRow[],
  { settled, window }: Pick<BrakeMarks, "settled" | "window">,
): BrakeMarks {
  const storms = rows.map((row) => [row.group, row] as const);
  return { settled, window, windows: ownWindows(storms, window) };
}

/** Every brake, from one scan of the store: the cluster's first, then groups by name. */
export function showBrakes({ reports, losses, rows }: Omit<BrakeReading, "lastLoss">): readonly ShownBrake[] {
  const totals = addBrakeSums([...reports.values()]);
  const byGroup = lossesByGroup(losses);
  const rowOf = new Map(rows.map((row) => [row.group, row]));
  const clusterRow = rowOf.get(BRAKE_CLUSTER) ?? null;
  const groups = new Set([...totals.keys(), ...byGroup.keys(), ...rowOf.keys()]);
  const others = [...groups].filter((name) => name !== "" && name !== BRAKE_CLUSTER).sort();
  return [BRAKE_CLUSTER, ...others].map((group) => {
    const row = rowOf.get(group) ?? null;
    const known = row === null || row.mode === "NORMAL" ? 0 : row.size;
    const cluster = group === BRAKE_CLUSTER ? null : settingOf(clusterRow);
    return {
      ...{ group, row, state: settingOf(row).state },
      counts: toldCounts(brakeCounts(known, totals.get(group), byGroup.get(group))),
      pending: byGroup.get(group)?.pending ?? 0,
      rate: releaseRate(settingOf(row), cluster),
    };
  });
}

/** The state of a group's brake, including an operator's freeze, and the size that determines its pace. */
function settingOf(row: BrakeRow | null): BrakeSetting {
  return row === null ? { state: "NORMAL", size: 0 } : { state: brakeStateOf(row), size: row.size };
}
