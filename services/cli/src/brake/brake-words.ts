import { durationMs } from "@bufbuild/protobuf/wkt";
import { type Brake, BrakeState, BrakeStateSchema } from "@rollcall/api/rollcall/admin/v1/brake_pb";
import type { Style } from "../output/style.ts";
import { formatExactDuration } from "../output/units.ts";

/** "NORMAL", "PARTIAL", "FULL", "FROZEN"; the number of a state that a newer server has. */
export function brakeWord(state: BrakeState): string {
  return BrakeStateSchema.value[state]?.localName ?? String(state);
}

/** How a state looks on a terminal. */
export function brakeStyle(state: BrakeState): Style {
  if (state === BrakeState.NORMAL) return "good";
  return state === BrakeState.PARTIAL ? "warning" : "bad";
}

/** Why a brake is as it is, and how fast it releases reactions, in one line. */
export function brakeDetail(brake: Brake): string {
  if (brake.state === BrakeState.FROZEN) {
    const why = brake.frozenReason === "" ? "" : `: ${brake.frozenReason}`;
    return `frozen by ${brake.frozenBy}${why}`;
  }
  const isLimited = brake.state !== BrakeState.NORMAL || brake.limitedByCluster;
  const rate = isLimited ? releaseWords(brake) : "";
  return brake.limitedByCluster ? `${rate}, by the cluster's brake` : rate;
}

/** "4 released a minute", "1 released every 2m", "none released". */
function releaseWords({ releasedPerMinute, releaseInterval }: Brake): string {
  if (releasedPerMinute === 0) return "none released";
  const everyMs = releaseInterval === undefined ? 0 : durationMs(releaseInterval);
  return everyMs > MINUTE_MS
    ? `1 released every ${formatExactDuration(everyMs)}`
    : `${releasedPerMinute} released a minute`;
}

const MINUTE_MS = 60_000;

/** What has to be said of brakes that are not NORMAL, a line each. */
export function brakeWarnings(brakes: readonly Brake[]): readonly string[] {
  return brakes
    .filter(({ state }) => state !== BrakeState.NORMAL)
    .map((brake) => {
      const { group, state, size, silent, lost, pending } = brake;
      const counts = `of ${size} nodes ${silent} silent, ${lost} lost; ${pending} reactions held back`;
      return `${group} is ${brakeWord(state)} (${brakeDetail(brake)}): ${counts}`;
    });
}
