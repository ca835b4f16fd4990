import { type Brake, BrakeState, BrakeStateSchema } from "@rollcall/api/rollcall/admin/v1/brake_pb";
import type { Style } from "../output/style.ts";

/** "NORMAL", "PARTIAL", "FULL", "FROZEN"; the number of a state that a newer server has. */
export function brakeWord(state: BrakeState): string {
  return BrakeStateSchema.value[state]?.localName ?? String(state);
}

/** How a state looks on a terminal. */
export function brakeStyle(state: BrakeState): Style {
  if (state === BrakeState.NORMAL) return "good";
  return state === BrakeState.PARTIAL ? "warning" : "bad";
}

/** Why a brake is as it is, in one line. */
export function brakeDetail(brake: Brake): string {
  if (brake.state === BrakeState.FROZEN) {
    const why = brake.frozenReason === "" ? "" : `: ${brake.frozenReason}`;
    return `frozen by ${brake.frozenBy}${why}`;
  }
  if (brake.state === BrakeState.PARTIAL) return `${brake.releasedPerMinute} released a minute`;
  return brake.state === BrakeState.FULL ? "none released" : "";
}

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
